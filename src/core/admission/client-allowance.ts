/**
 * A client's allowance a in (0, 1] scales its weight in the queue and its Retry-After. It is cut when the client asks for
 * far more than its share, held while that goes on, and restored slowly. Work-conserving: others get what it may not use;
 * alone, it loses nothing.
 */
import type { ClientState } from '../events/event-labels.ts';
import type { ClientsView } from '../events/gate-views.ts';
import type { Millis, PerSecond } from '../scalars.ts';

/** A demand of more than this many times the client's share is a flood. Below that, only the queue decides. */
export const FLOOD_FACTOR = 3;
const MIN_ALLOWANCE = 1 / 16;
const COOLDOWN: Millis = 2000;
const RESTORE: Millis = 30_000;
const DEMAND_SPAN: Millis = 2000;

/** Demand in arrivals a second, exponentially weighted over 2 s, after `elapsed` without an arrival. */
export function decayDemand(demand: PerSecond, elapsed: Millis): PerSecond {
  return demand * Math.exp(-elapsed / DEMAND_SPAN);
}

/** Demand after one more arrival. */
export function raiseDemand(demand: PerSecond): PerSecond {
  return demand + 1000 / DEMAND_SPAN;
}

/** a = min(a, max(1/16, 3φ/d)), for a demand d of more than three times the client's share φ of the rate. */
export function reduceAllowance(allowance: number, demand: PerSecond, share: PerSecond): number {
  return Math.min(allowance, Math.max(MIN_ALLOWANCE, (FLOOD_FACTOR * share) / demand));
}

/** a = 1 − (1 − a_cut)(1 − u/30 s)³, where u counts from 2 s after the last refusal of a flood. */
export function restoreAllowance(reducedTo: number, refusedAt: Millis, now: Millis): number {
  const u = now - refusedAt - COOLDOWN;
  if (u <= 0) return reducedTo;
  if (u >= RESTORE) return 1;
  return 1 - (1 - reducedTo) * (1 - u / RESTORE) ** 3;
}

/** @param stillRefused no request of the client has been admitted since its allowance was cut */
export function allowanceState(refusedAt: Millis, stillRefused: boolean, now: Millis): ClientState {
  const since = now - refusedAt;
  if (since < COOLDOWN) return stillRefused ? 'backoff' : 'cooldown';
  return since < COOLDOWN + RESTORE ? 'restoring' : 'normal';
}

/** When the client is `normal` again, if it is neither held nor refused until then. */
export function calmAt(refusedAt: Millis, heldUntil: Millis): Millis {
  return Math.max(heldUntil, refusedAt + COOLDOWN + RESTORE);
}

/** A client in a store: a small number, reused after the client was evicted. */
export type ClientSlot = number;

/** Keeps the state of clients. Bounded: if it is full, the client closest to `normal` is evicted. */
export interface ClientStore {
  /**
   * Finds or creates the client, records an arrival, and protects it from eviction until `leave`.
   * @param key its identity at the upstream; without `upstream`: the upstream, a NUL and the identity
   */
  enter(key: string, now: Millis, upstream?: string): ClientSlot;
  /** As `enter`, for a report on a client: records no arrival. */
  visit(key: string, now: Millis, upstream?: string): ClientSlot;
  leave(slot: ClientSlot): void;
  /** When the arrival before the last one was; −Infinity if there was none. */
  previousArrival(slot: ClientSlot): Millis;
  demand(slot: ClientSlot, now: Millis): PerSecond;
  allowance(slot: ClientSlot, now: Millis): number;
  /** Records a refusal. If the demand is a flood against this share, cuts the allowance. Returns it if it fell. */
  onRefused(slot: ClientSlot, share: PerSecond, now: Millis): number | undefined;
  onAdmitted(slot: ClientSlot, now: Millis): void;
  heldUntil(slot: ClientSlot): Millis;
  hold(slot: ClientSlot, until: Millis, now: Millis): void;
  /** When the last Retry-After asked the client to return; −Infinity if there was none. */
  promisedReturn(slot: ClientSlot): Millis;
  /** As `promisedReturn`, of the first such time that it has not used. */
  firstPromisedReturn(slot: ClientSlot): Millis;
  /** Whether a limit has it in its `returnPromises` too: it is from a time when the upstream had several limits. */
  isPromiseKeptByLimit(slot: ClientSlot): boolean;
  /**
   * @param first the first one that it has not used; the same if absent
   * @param isKeptByLimit false if absent
   */
  setPromisedReturn(slot: ClientSlot, at: Millis, first?: Millis, isKeptByLimit?: boolean): void;
  view(now: Millis): ClientsView;
}
