import type { ClientHold } from '../../core/limits/client-holds.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import {
  reduceAllowance,
  decayDemand,
  FLOOD_FACTOR,
  raiseDemand,
  restoreAllowance,
  type ClientSlot,
  type ClientStore,
} from '../../core/admission/client-allowance.ts';
import type { ClientState } from '../../core/events/event-labels.ts';
import type { ClientsView } from '../../core/events/gate-views.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import { ClientEviction } from './client-eviction.ts';
import { ClientRecords } from './client-records.ts';
import { ClientStates, HELD, NORMAL } from './client-states.ts';
import { SlotIndex } from './slot-index.ts';

const NEVER = Number.NEGATIVE_INFINITY;
/** A reduced allowance is published below this part of the former one: other processes notice small steps themselves. */
const PUBLISH_BELOW = 0.9;

/**
 * Remembers clients in typed arrays: a million of them cost no objects and no long garbage collection. Beyond `maxTracked` it
 * evicts the client that was normal for longest or is next to become normal. If all are in use, new clients share one slot.
 */
export class ClientTable implements ClientStore {
  readonly #maxTracked: number;
  readonly #onHold: ((hold: ClientHold) => void) | undefined;
  readonly #records = new ClientRecords();
  readonly #index = new SlotIndex(this.#records.keys);
  readonly #eviction = new ClientEviction(this.#records);
  readonly #states: ClientStates;
  /** Slots that have been used, including the shared one. */
  #slotsUsed = 0;
  #evictions = 0;

  /** @param onHold called for each new or longer hold and each reduced allowance, except those of `applyHold` */
  constructor(maxTracked: number, listen: EventSink, onHold?: (hold: ClientHold) => void) {
    this.#maxTracked = maxTracked;
    this.#states = new ClientStates(this.#records, this.#eviction, this.#overflowSlot, listen);
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
    this.#records.setOpenRequests(slot, this.#records.openRequests(slot) + 1);
    this.#eviction.remove(slot);
    this.#states.update(slot, now);
    return slot;
  }

  leave(slot: ClientSlot): void {
    this.#records.setOpenRequests(slot, this.#records.openRequests(slot) - 1);
    if (this.#records.openRequests(slot) === 0 && slot !== this.#overflowSlot) this.#eviction.add(slot);
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

  onRefused(slot: ClientSlot, share: PerSecond, now: Millis): number | undefined {
    const demand = this.demand(slot, now);
    if (demand <= FLOOD_FACTOR * share) return undefined;
    const allowance = this.allowance(slot, now);
    const cutTo = reduceAllowance(allowance, demand, share);
    this.#lowerAllowance(slot, cutTo, now);
    if (cutTo < PUBLISH_BELOW * allowance && slot !== this.#overflowSlot) {
      this.#onHold?.({ client: this.#records.keys.get(slot), until: NEVER, allowance: cutTo });
    }
    return cutTo < allowance ? cutTo : undefined;
  }

  onAdmitted(slot: ClientSlot, now: Millis): void {
    this.#records.setStillRefused(slot, false);
    this.#states.update(slot, now);
  }

  heldUntil(slot: ClientSlot): Millis {
    return this.#records.get(slot, 'heldUntil');
  }

  hold(slot: ClientSlot, until: Millis, now: Millis): void {
    if (slot === this.#overflowSlot) return; // a hold of one client must not hold all that share the slot
    if (until > this.heldUntil(slot)) this.#onHold?.({ client: this.#records.keys.get(slot), until });
    this.#extendHold(slot, until, now);
  }

  /** Applies what another process's `onHold` published. The client may be unknown; no arrival is counted. */
  applyHold({ client, until, allowance }: ClientHold, now: Millis): void {
    const known = this.#index.get(client);
    const slot = known ?? this.#track(client, undefined, now);
    if (slot === this.#overflowSlot) return; // as in `hold`
    if (allowance !== undefined) this.#lowerAllowance(slot, Math.min(allowance, this.allowance(slot, now)), now);
    this.#extendHold(slot, until, now);
    if (known === undefined) this.#eviction.add(slot);
  }

  #lowerAllowance(slot: ClientSlot, cutTo: number, now: Millis): void {
    this.#records.set(slot, 'cutTo', cutTo);
    this.#records.set(slot, 'refusedAt', now);
    this.#records.setStillRefused(slot, true);
    this.#states.update(slot, now);
  }

  #extendHold(slot: ClientSlot, until: Millis, now: Millis): void {
    this.#records.set(slot, 'heldUntil', Math.max(this.#records.get(slot, 'heldUntil'), until));
    this.#states.update(slot, now);
  }

  /** Clients that have to wait, `max` at most. */
  activeHolds(max: number, now: Millis): ClientHold[] {
    const holds: ClientHold[] = [];
    for (let slot = 0; slot < this.slots && holds.length < max; slot += 1) {
      const until = this.#records.cachedState(slot) === HELD ? this.heldUntil(slot) : NEVER;
      if (until > now) holds.push({ client: this.#records.keys.get(slot), until });
    }
    return holds;
  }

  find(upstream: string, client: string): ClientSlot | undefined {
    return this.#index.get(client, upstream);
  }

  /** Forgets a client's hold, allowance and promised return. */
  resetClient(slot: ClientSlot, now: Millis): void {
    const wasEvictable = this.#eviction.remove(slot); // its place depends on when it would have been normal
    this.#records.clearRefusals(slot);
    this.#states.update(slot, now);
    if (wasEvictable) this.#eviction.add(slot);
  }

  readonly promisedReturn = (slot: ClientSlot): Millis => this.#records.get(slot, 'promisedAt');
  readonly firstPromisedReturn = (slot: ClientSlot): Millis => this.#records.firstPromise(slot);
  readonly isPromiseKeptByLimit = (slot: ClientSlot): boolean => this.#records.isPromiseKeptByLimit(slot);

  setPromisedReturn(slot: ClientSlot, when: Millis, first = when, isKeptByLimit = false): void {
    this.#records.setPromises(slot, when, first, isKeptByLimit);
  }

  get bound(): ResourceBound {
    return { name: 'clients', used: this.#index.size / this.#maxTracked, reached: this.#evictions };
  }

  view(now: Millis): ClientsView {
    let min = 1;
    let lost = 0;
    for (let slot = 0; slot < this.slots; slot += 1) {
      if (this.wasNormal(slot)) continue;
      this.#states.update(slot, now);
      const allowance = this.allowance(slot, now);
      min = Math.min(min, allowance);
      lost += 1 - allowance;
    }
    return {
      tracked: this.tracked,
      byState: { ...this.#states.counts },
      allowance: { min, mean: 1 - lost / Math.max(1, this.tracked) },
    };
  }

  /** All slots below this belong to clients. Between two turns of the event loop, a slot may get another client. */
  get slots(): number {
    return Math.min(this.#slotsUsed, this.#maxTracked);
  }

  get tracked(): number {
    return this.#index.size;
  }

  /** Whether the client was normal when its state was updated last. Does not read its record. */
  wasNormal(slot: ClientSlot): boolean {
    return this.#records.cachedState(slot) === NORMAL;
  }

  stateAt(slot: ClientSlot, now: Millis): ClientState {
    this.#states.update(slot, now);
    return this.#states.get(slot);
  }

  nameOf(slot: ClientSlot): readonly [upstream: string, client: string] {
    return this.#records.nameOf(slot);
  }

  arrivedAt(slot: ClientSlot): Millis {
    return this.#records.get(slot, 'arrivedAt');
  }

  /** When the client is normal again, if nothing happens to it until then. */
  calmAt(slot: ClientSlot): Millis {
    return this.#eviction.calmAt(slot);
  }

  /** Returns a slot for a new client: an unused one, that of an evicted client, or the shared one. */
  #track(key: string, upstream: string | undefined, now: Millis): ClientSlot {
    const slot = this.#slotsUsed < this.#maxTracked ? this.#allocate() : this.#evict(now);
    if (slot === undefined) {
      if (this.#slotsUsed === this.#maxTracked) this.#records.clear(this.#allocate());
      return this.#overflowSlot;
    }
    this.#index.set(slot, key, upstream);
    this.#records.clear(slot);
    this.#states.counts.normal += 1;
    return slot;
  }

  /** Frees the slot of an unused client; undefined if all are in use. */
  #evict(now: Millis): ClientSlot | undefined {
    const slot = this.#states.evictNext(now);
    if (slot === undefined) return undefined;
    this.#index.delete(slot);
    this.#evictions += 1;
    return slot;
  }

  /** The slot that clients beyond `maxTracked` share. */
  get #overflowSlot(): ClientSlot {
    return this.#maxTracked;
  }

  #allocate(): ClientSlot {
    const { length } = this.#records;
    if (this.#slotsUsed === length) {
      const room = Math.min(this.#maxTracked + 1, Math.max(64, 2 * length));
      this.#records.grow(room);
      this.#eviction.grow(room);
    }
    this.#slotsUsed += 1;
    return this.#slotsUsed - 1;
  }
}
