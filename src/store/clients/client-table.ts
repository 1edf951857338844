import type { Bound } from '../../core/overload/resource-bound.ts';
import type { ClientSlot, ClientStore } from '../../core/admission/client-allowance.ts';
import {
  allowanceState,
  calmAt,
  cutAllowance,
  decayDemand,
  FLOOD,
  raiseDemand,
  restoreAllowance,
} from '../../core/admission/client-allowance.ts';
import type { ClientState, ClientsView, Listen } from '../../core/events/proxy-events.ts';
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { Hold } from '../../sharing/workers/worker-protocol.ts';
import { ClientRecords } from './client-records.ts';
import { SlotHeap } from './slot-heap.ts';
import { SlotIndex } from './slot-index.ts';

const STATES = ['normal', 'held', 'backoff', 'cooldown', 'restoring'] as const satisfies readonly ClientState[];
const HELD = STATES.indexOf('held');
const NEVER = Number.NEGATIVE_INFINITY;
/** Others are told of an allowance that has fallen to so much of what it was: small steps they will see themselves. */
const TOLD_BELOW = 0.9;

/**
 * What is remembered of clients, in typed arrays: a million of them cost neither objects nor long collections.
 * Holds at most `maxTracked`; then the client that has been calm for longest is forgotten, or, when all are in trouble,
 * the one nearest to normal. With everyone in use, newcomers share one slot: limited together, and never unbounded.
 */
export class ClientTable implements ClientStore {
  readonly #maxTracked: number;
  readonly #listen: Listen;
  readonly #onHold: ((hold: Hold) => void) | undefined;
  readonly #records = new ClientRecords();
  readonly #index = new SlotIndex(this.#records.keys);
  /** Nobody uses them, and they are normal. */
  readonly #calm = this.#records.list;
  readonly #troubled = new SlotHeap();
  readonly #counts: Record<ClientState, number> = { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 };
  /** Slots that have been used, of clients and the one that is shared. */
  #made = 0;
  #evictions = 0;

  /** @param onHold told of each client that is to wait from now on, or for longer, or is allowed less; not of what `heed` was told */
  constructor(maxTracked: number, listen: Listen, onHold?: (hold: Hold) => void) {
    this.#maxTracked = maxTracked;
    this.#listen = listen;
    this.#onHold = onHold;
  }

  enter(key: string, now: Millis, upstream?: string): ClientSlot {
    const slot = this.visit(key, now, upstream);
    this.#records.set(slot, 'previousAt', this.#records.get(slot, 'arrivedAt'));
    this.#records.set(slot, 'demand', raiseDemand(this.demand(slot, now)));
    this.#records.set(slot, 'arrivedAt', now);
    return slot;
  }

  visit(key: string, now: Millis, upstream?: string): ClientSlot {
    const slot = this.#index.get(key, upstream) ?? this.#track(key, upstream, now);
    this.#records.setUsers(slot, this.#records.users(slot) + 1);
    this.#unlist(slot);
    this.#settle(slot, now);
    return slot;
  }

  leave(slot: ClientSlot): void {
    this.#records.setUsers(slot, this.#records.users(slot) - 1);
    if (this.#records.users(slot) === 0 && slot !== this.#shared) this.#list(slot);
  }

  previousArrival(slot: ClientSlot): Millis {
    return this.#records.get(slot, 'previousAt');
  }

  demand(slot: ClientSlot, now: Millis): PerSecond {
    const arrived = this.#records.get(slot, 'arrivedAt');
    return arrived === NEVER ? 0 : decayDemand(this.#records.get(slot, 'demand'), now - arrived);
  }

  allowance(slot: ClientSlot, now: Millis): number {
    return restoreAllowance(this.#records.get(slot, 'cutTo'), this.#records.get(slot, 'refusedAt'), now);
  }

  refused(slot: ClientSlot, share: PerSecond, now: Millis): number | undefined {
    const demand = this.demand(slot, now);
    if (demand <= FLOOD * share) return undefined;
    const allowance = this.allowance(slot, now);
    const cutTo = cutAllowance(allowance, demand, share);
    this.#cut(slot, cutTo, now);
    if (cutTo < TOLD_BELOW * allowance && slot !== this.#shared) {
      this.#onHold?.({ client: this.#records.keys.get(slot), until: NEVER, allowance: cutTo });
    }
    return cutTo < allowance ? cutTo : undefined;
  }

  admitted(slot: ClientSlot, now: Millis): void {
    this.#records.setStillRefused(slot, false);
    this.#settle(slot, now);
  }

  heldUntil(slot: ClientSlot): Millis {
    return this.#records.get(slot, 'heldUntil');
  }

  hold(slot: ClientSlot, until: Millis, now: Millis): void {
    const isNews = until > this.heldUntil(slot) && slot !== this.#shared;
    if (isNews) this.#onHold?.({ client: this.#records.keys.get(slot), until });
    this.#extend(slot, until, now);
  }

  /** What another table's `onHold` was told, of a client that need not be here, and has not arrived. */
  heed({ client, until, allowance }: Hold, now: Millis): void {
    const known = this.#index.get(client);
    const slot = known ?? this.#track(client, undefined, now);
    if (slot === this.#shared) return; // not everybody for whom there is no room
    if (allowance !== undefined) this.#cut(slot, Math.min(allowance, this.allowance(slot, now)), now);
    this.#extend(slot, until, now);
    if (known === undefined) this.#list(slot);
  }

  #cut(slot: ClientSlot, cutTo: number, now: Millis): void {
    this.#records.set(slot, 'cutTo', cutTo);
    this.#records.set(slot, 'refusedAt', now);
    this.#records.setStillRefused(slot, true);
    this.#settle(slot, now);
  }

  #extend(slot: ClientSlot, until: Millis, now: Millis): void {
    this.#records.set(slot, 'heldUntil', Math.max(this.#records.get(slot, 'heldUntil'), until));
    this.#settle(slot, now);
  }

  /** Those who are to wait, `most` at most. */
  holds(most: number, now: Millis): Hold[] {
    const holds: Hold[] = [];
    for (let slot = 0; slot < Math.min(this.#made, this.#maxTracked) && holds.length < most; slot += 1) {
      const until = this.heldUntil(slot);
      if (this.#records.listedState(slot) !== HELD || until <= now) continue;
      holds.push({ client: this.#records.keys.get(slot), until });
    }
    return holds;
  }

  /** It begins anew: whatever it was told, or its allowance had fallen to, is forgotten. Returns whether it is known. */
  forgive(upstream: string, client: string, now: Millis): boolean {
    const slot = this.#index.get(client, upstream);
    if (slot === undefined) return false;
    const isListed = this.#unlist(slot); // by when it would have been calm
    for (const name of ['refusedAt', 'heldUntil', 'promisedAt'] as const) this.#records.set(slot, name, NEVER);
    this.#records.set(slot, 'cutTo', 1);
    this.#records.setStillRefused(slot, false);
    this.#settle(slot, now);
    if (isListed) this.#list(slot);
    return true;
  }

  promised(slot: ClientSlot): Millis {
    return this.#records.get(slot, 'promisedAt');
  }

  promise(slot: ClientSlot, when: Millis): void {
    this.#records.set(slot, 'promisedAt', when);
  }

  get bound(): Bound {
    return { name: 'clients', used: this.#index.size / this.#maxTracked, reached: this.#evictions };
  }

  view(now: Millis): ClientsView {
    let min = 1;
    let lost = 0;
    for (let slot = 0; slot < this.slots; slot += 1) {
      if (this.wasNormal(slot)) continue;
      this.#settle(slot, now);
      const allowance = this.allowance(slot, now);
      min = Math.min(min, allowance);
      lost += 1 - allowance;
    }
    const tracked = this.#index.size;
    return { tracked, byState: { ...this.#counts }, allowance: { min, mean: tracked === 0 ? 1 : 1 - lost / tracked } };
  }

  /** Slots in use: all below it are of clients. For who goes through them; between two turns, clients may change places. */
  get slots(): number {
    return Math.min(this.#made, this.#maxTracked);
  }

  get tracked(): number {
    return this.#index.size;
  }

  /** Whether it was normal when it was looked at last: told without touching what is remembered of it. */
  wasNormal(slot: ClientSlot): boolean {
    return this.#records.listedState(slot) === 0;
  }

  stateAt(slot: ClientSlot, now: Millis): ClientState {
    this.#settle(slot, now);
    return this.#stateOf(slot);
  }

  /** The upstream and the client. */
  nameOf(slot: ClientSlot): readonly [upstream: string, client: string] {
    const [upstream = '', client = ''] = this.#records.keys.get(slot).split('\0');
    return [upstream, client];
  }

  /** When it arrived last. */
  arrivedAt(slot: ClientSlot): Millis {
    return this.#records.get(slot, 'arrivedAt');
  }

  /** When it is normal again, if nothing happens to it until then. */
  calmAt(slot: ClientSlot): Millis {
    return calmAt(this.#records.get(slot, 'refusedAt'), this.#records.get(slot, 'heldUntil'));
  }

  /** Finds room for a newcomer. */
  #track(key: string, upstream: string | undefined, now: Millis): ClientSlot {
    const slot = this.#made < this.#maxTracked ? this.#make() : this.#evict(now);
    if (slot === undefined) return this.#share();
    this.#index.set(slot, key, upstream);
    this.#records.clear(slot);
    this.#counts.normal += 1;
    return slot;
  }

  /** The calmest first: of the normal the one that has been so for longest, else the one that will be so first. */
  #evict(now: Millis): ClientSlot | undefined {
    for (let slot = this.#troubled.first; slot !== undefined; slot = this.#troubled.first) {
      this.#settle(slot, now);
      if (this.#records.state(slot) !== 0) break;
    }
    const calm = this.#calm.first;
    const slot = calm ?? this.#troubled.first;
    if (slot === undefined) return undefined;
    this.#unlist(slot);
    this.#counts[this.#stateOf(slot)] -= 1;
    this.#index.delete(slot);
    this.#evictions += 1;
    this.#listen({ type: 'client-evicted', cause: calm === undefined ? 'troubled' : 'calm' });
    return slot;
  }

  /** The slot of those for whom there is no room: one more than can be tracked. */
  get #shared(): ClientSlot {
    return this.#maxTracked;
  }

  #share(): ClientSlot {
    if (this.#made === this.#maxTracked) this.#records.clear(this.#make());
    return this.#shared;
  }

  /** Notes a change of state, and moves the client to the list it belongs to. */
  #settle(slot: ClientSlot, now: Millis): void {
    const from = this.#stateOf(slot);
    const to =
      this.#records.get(slot, 'heldUntil') > now
        ? 'held'
        : allowanceState(this.#records.get(slot, 'refusedAt'), this.#records.isStillRefused(slot), now);
    if (from === to) return;
    const isListed = this.#unlist(slot);
    this.#records.setState(slot, STATES.indexOf(to));
    if (isListed) this.#list(slot);
    if (slot === this.#shared) return;
    this.#counts[from] -= 1;
    this.#counts[to] += 1;
    const [upstream, client] = this.nameOf(slot);
    this.#listen({ type: 'client-state', upstream, client, from, to });
  }

  #stateOf(slot: ClientSlot): ClientState {
    return STATES[this.#records.state(slot)] ?? 'normal';
  }

  /** Nobody uses it: it may be forgotten. */
  #list(slot: ClientSlot): void {
    if (this.#records.state(slot) === 0) this.#calm.push(slot);
    else this.#troubled.push(slot, calmAt(this.#records.get(slot, 'refusedAt'), this.#records.get(slot, 'heldUntil')));
  }

  /** Returns whether it was listed. */
  #unlist(slot: ClientSlot): boolean {
    if (this.#calm.has(slot)) this.#calm.remove(slot);
    else if (this.#troubled.has(slot)) this.#troubled.remove(slot);
    else return false;
    return true;
  }

  /** One more slot than there has been. */
  #make(): ClientSlot {
    const { length } = this.#records;
    if (this.#made === length) {
      const room = Math.min(this.#maxTracked + 1, Math.max(64, 2 * length));
      this.#records.grow(room);
      this.#troubled.grow(room);
    }
    this.#made += 1;
    return this.#made - 1;
  }
}
