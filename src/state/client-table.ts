import type { Bound } from '../policy/bound.ts';
import type { ClientSlot, ClientStore } from '../policy/client.ts';
import {
  allowanceState,
  calmAt,
  cutAllowance,
  decayDemand,
  FLOOD,
  raiseDemand,
  restoreAllowance,
} from '../policy/client.ts';
import type { ClientState, ClientsView, Listen } from '../policy/events.ts';
import type { Millis, PerSecond } from '../policy/types.ts';
import { SlotHeap } from './slot-heap.ts';
import { SlotList } from './slot-list.ts';

const STATES = ['normal', 'held', 'backoff', 'cooldown', 'restoring'] as const satisfies readonly ClientState[];
const NEVER = Number.NEGATIVE_INFINITY;

/**
 * What is remembered of clients, in typed arrays: a million of them cost neither objects nor long collections.
 * Holds at most `maxTracked`; then the client that has been calm for longest is forgotten, or, when all are in trouble,
 * the one nearest to normal. With everyone in use, newcomers share one slot: limited together, and never unbounded.
 */
export class ClientTable implements ClientStore {
  readonly #maxTracked: number;
  readonly #listen: Listen;
  readonly #slots = new Map<string, ClientSlot>();
  readonly #keys: string[] = [];
  readonly #calm = new SlotList();
  readonly #troubled = new SlotHeap();
  readonly #counts: Record<ClientState, number> = { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 };
  #arrivedAt = new Float64Array(0);
  #previousAt = new Float64Array(0);
  #demand = new Float64Array(0);
  #cutTo = new Float64Array(0);
  #refusedAt = new Float64Array(0);
  #heldUntil = new Float64Array(0);
  #promisedAt = new Float64Array(0);
  #stillRefused = new Uint8Array(0);
  #state = new Uint8Array(0);
  #users = new Uint32Array(0);
  #evictions = 0;

  constructor(maxTracked: number, listen: Listen) {
    this.#maxTracked = maxTracked;
    this.#listen = listen;
  }

  enter(key: string, now: Millis): ClientSlot {
    const slot = this.#slots.get(key) ?? this.#track(key, now);
    this.#previousAt[slot] = at(this.#arrivedAt, slot);
    this.#demand[slot] = raiseDemand(this.demand(slot, now));
    this.#arrivedAt[slot] = now;
    this.#users[slot] = at(this.#users, slot) + 1;
    this.#unlist(slot);
    this.#settle(slot, now);
    return slot;
  }

  leave(slot: ClientSlot): void {
    this.#users[slot] = at(this.#users, slot) - 1;
    if (at(this.#users, slot) === 0 && slot !== this.#shared) this.#list(slot);
  }

  previousArrival(slot: ClientSlot): Millis {
    return at(this.#previousAt, slot);
  }

  demand(slot: ClientSlot, now: Millis): PerSecond {
    const arrived = at(this.#arrivedAt, slot);
    return arrived === NEVER ? 0 : decayDemand(at(this.#demand, slot), now - arrived);
  }

  allowance(slot: ClientSlot, now: Millis): number {
    return restoreAllowance(at(this.#cutTo, slot), at(this.#refusedAt, slot), now);
  }

  refused(slot: ClientSlot, share: PerSecond, now: Millis): number | undefined {
    const demand = this.demand(slot, now);
    if (demand <= FLOOD * share) return undefined;
    const allowance = this.allowance(slot, now);
    const cutTo = cutAllowance(allowance, demand, share);
    this.#cutTo[slot] = cutTo;
    this.#refusedAt[slot] = now;
    this.#stillRefused[slot] = 1;
    this.#settle(slot, now);
    return cutTo < allowance ? cutTo : undefined;
  }

  admitted(slot: ClientSlot, now: Millis): void {
    this.#stillRefused[slot] = 0;
    this.#settle(slot, now);
  }

  heldUntil(slot: ClientSlot): Millis {
    return at(this.#heldUntil, slot);
  }

  hold(slot: ClientSlot, until: Millis, now: Millis): void {
    this.#heldUntil[slot] = Math.max(at(this.#heldUntil, slot), until);
    this.#settle(slot, now);
  }

  promised(slot: ClientSlot): Millis {
    return at(this.#promisedAt, slot);
  }

  promise(slot: ClientSlot, when: Millis): void {
    this.#promisedAt[slot] = when;
  }

  get bound(): Bound {
    return { name: 'clients', used: this.#slots.size / this.#maxTracked, reached: this.#evictions };
  }

  view(now: Millis): ClientsView {
    let min = 1;
    let lost = 0;
    for (let slot = 0; slot < Math.min(this.#keys.length, this.#maxTracked); slot += 1) {
      if (at(this.#state, slot) === 0) continue;
      this.#settle(slot, now);
      const allowance = this.allowance(slot, now);
      min = Math.min(min, allowance);
      lost += 1 - allowance;
    }
    const tracked = this.#slots.size;
    return { tracked, byState: { ...this.#counts }, allowance: { min, mean: tracked === 0 ? 1 : 1 - lost / tracked } };
  }

  /** Finds room for a newcomer. */
  #track(key: string, now: Millis): ClientSlot {
    const hasRoom = this.#keys.length < this.#maxTracked;
    const slot = hasRoom ? this.#keys.length : this.#evict(now);
    if (slot === undefined) return this.#share();
    this.#grow(slot + 1);
    this.#slots.set(key, slot);
    this.#keys[slot] = key;
    this.#clear(slot);
    this.#counts.normal += 1;
    return slot;
  }

  /** The calmest first: of the normal the one that has been so for longest, else the one that will be so first. */
  #evict(now: Millis): ClientSlot | undefined {
    for (let slot = this.#troubled.first; slot !== undefined; slot = this.#troubled.first) {
      this.#settle(slot, now);
      if (at(this.#state, slot) !== 0) break;
    }
    const calm = this.#calm.first;
    const slot = calm ?? this.#troubled.first;
    if (slot === undefined) return undefined;
    this.#unlist(slot);
    this.#counts[this.#stateOf(slot)] -= 1;
    this.#slots.delete(this.#keys[slot] ?? '');
    this.#evictions += 1;
    this.#listen({ type: 'client-evicted', cause: calm === undefined ? 'troubled' : 'calm' });
    return slot;
  }

  /** The slot of those for whom there is no room: one more than can be tracked. */
  get #shared(): ClientSlot {
    return this.#maxTracked;
  }

  #share(): ClientSlot {
    if (this.#keys.length === this.#maxTracked) {
      this.#grow(this.#maxTracked + 1);
      this.#keys.push('\0(untracked)');
      this.#clear(this.#shared);
    }
    return this.#shared;
  }

  /** Notes a change of state, and moves the client to the list it belongs to. */
  #settle(slot: ClientSlot, now: Millis): void {
    const from = this.#stateOf(slot);
    const to =
      at(this.#heldUntil, slot) > now
        ? 'held'
        : allowanceState(at(this.#refusedAt, slot), at(this.#stillRefused, slot) === 1, now);
    if (from === to) return;
    const isListed = this.#unlist(slot);
    this.#state[slot] = STATES.indexOf(to);
    if (isListed) this.#list(slot);
    if (slot === this.#shared) return;
    this.#counts[from] -= 1;
    this.#counts[to] += 1;
    const [upstream = '', client = ''] = (this.#keys[slot] ?? '').split('\0');
    this.#listen({ type: 'client-state', upstream, client, from, to });
  }

  #stateOf(slot: ClientSlot): ClientState {
    return STATES[at(this.#state, slot)] ?? 'normal';
  }

  /** Nobody uses it: it may be forgotten. */
  #list(slot: ClientSlot): void {
    if (at(this.#state, slot) === 0) this.#calm.push(slot);
    else this.#troubled.push(slot, calmAt(at(this.#refusedAt, slot), at(this.#heldUntil, slot)));
  }

  /** Returns whether it was listed. */
  #unlist(slot: ClientSlot): boolean {
    if (this.#calm.has(slot)) this.#calm.remove(slot);
    else if (this.#troubled.has(slot)) this.#troubled.remove(slot);
    else return false;
    return true;
  }

  #clear(slot: ClientSlot): void {
    for (const column of [this.#arrivedAt, this.#previousAt, this.#refusedAt, this.#heldUntil, this.#promisedAt]) {
      column[slot] = NEVER;
    }
    this.#demand[slot] = 0;
    this.#cutTo[slot] = 1;
    this.#stillRefused[slot] = 0;
    this.#state[slot] = 0;
    this.#users[slot] = 0;
  }

  #grow(count: number): void {
    if (count <= this.#state.length) return;
    const length = Math.min(this.#maxTracked + 1, Math.max(64, 2 * this.#state.length));
    this.#arrivedAt = grown(this.#arrivedAt, new Float64Array(length));
    this.#previousAt = grown(this.#previousAt, new Float64Array(length));
    this.#demand = grown(this.#demand, new Float64Array(length));
    this.#cutTo = grown(this.#cutTo, new Float64Array(length));
    this.#refusedAt = grown(this.#refusedAt, new Float64Array(length));
    this.#heldUntil = grown(this.#heldUntil, new Float64Array(length));
    this.#promisedAt = grown(this.#promisedAt, new Float64Array(length));
    this.#stillRefused = grown(this.#stillRefused, new Uint8Array(length));
    this.#state = grown(this.#state, new Uint8Array(length));
    this.#users = grown(this.#users, new Uint32Array(length));
    this.#calm.grow(length);
    this.#troubled.grow(length);
  }
}

interface Column {
  readonly [slot: number]: number;
}

/** Slots are always within the columns; the fallback is for the type checker. */
function at(column: Column, slot: ClientSlot): number {
  return column[slot] ?? 0;
}

function grown<C extends { set(from: C): void }>(from: C, to: C): C {
  to.set(from);
  return to;
}
