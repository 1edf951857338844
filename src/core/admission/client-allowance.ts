/**
 * A client's allowance a in (0, 1]: its weight in the queue, and the hint it is told, are scaled by it. Cut when the
 * client asks for far more than its share, held while it goes on, restored slowly. Work-conserving: what it may not use
 * the others get; alone, it loses nothing.
 */
import type { ClientState, ClientsView } from '../events/proxy-events.ts';
import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';

/** Asking for more than this many times one's share is a flood; below it, only the queue decides. */
export const FLOOD = 3;
const LEAST_ALLOWANCE = 1 / 16;
const COOLDOWN: Millis = 2000;
const RESTORE: Millis = 30_000;
const DEMAND_SPAN: Millis = 2000;

/** Arrivals a second, exponentially weighted over 2 s, after `elapsed` without one. */
export function decayDemand(demand: PerSecond, elapsed: Millis): PerSecond {
  return demand * Math.exp(-elapsed / DEMAND_SPAN);
}

/** One arrival more. */
export function raiseDemand(demand: PerSecond): PerSecond {
  return demand + 1000 / DEMAND_SPAN;
}

/** a = min(a, max(1/16, 3φ/d)): down to what is still thrice its share φ of the rate, for a demand d above that. */
export function cutAllowance(allowance: number, demand: PerSecond, share: PerSecond): number {
  return Math.min(allowance, Math.max(LEAST_ALLOWANCE, (FLOOD * share) / demand));
}

/** a = 1 − (1 − a_cut)(1 − u/30 s)³, u counted from 2 s after the last refusal of a flood. */
export function restoreAllowance(cutTo: number, refusedAt: Millis, now: Millis): number {
  const u = now - refusedAt - COOLDOWN;
  if (u <= 0) return cutTo;
  if (u >= RESTORE) return 1;
  return 1 - (1 - cutTo) * (1 - u / RESTORE) ** 3;
}

/** `stillRefused`: nothing of the client has been admitted since its allowance was cut. */
export function allowanceState(refusedAt: Millis, stillRefused: boolean, now: Millis): ClientState {
  const since = now - refusedAt;
  if (since < COOLDOWN) return stillRefused ? 'backoff' : 'cooldown';
  return since < COOLDOWN + RESTORE ? 'restoring' : 'normal';
}

/** When a client is normal again, if nothing happens to it until then. */
export function calmAt(refusedAt: Millis, heldUntil: Millis): Millis {
  return Math.max(heldUntil, refusedAt + COOLDOWN + RESTORE);
}

/** A client in a store: a small number, reused after the client has been forgotten. */
export type ClientSlot = number;

/** Who remembers clients. Bounded: where there is no room, the calmest is forgotten. */
export interface ClientStore {
  /**
   * Finds or makes the client, notes an arrival, and keeps it from being forgotten until `leave`.
   * @param key its identity at the upstream; or both joined, the upstream first and a NUL between
   */
  enter(key: string, now: Millis, upstream?: string): ClientSlot;
  /** As `enter`, of a client that is spoken of and has not arrived. */
  visit(key: string, now: Millis, upstream?: string): ClientSlot;
  leave(slot: ClientSlot): void;
  /** When it arrived the time before; −Infinity at first. */
  previousArrival(slot: ClientSlot): Millis;
  demand(slot: ClientSlot, now: Millis): PerSecond;
  allowance(slot: ClientSlot, now: Millis): number;
  /** A refusal: if the demand is a flood against this share, it holds the allowance down. Returns it where it fell. */
  refused(slot: ClientSlot, share: PerSecond, now: Millis): number | undefined;
  admitted(slot: ClientSlot, now: Millis): void;
  heldUntil(slot: ClientSlot): Millis;
  hold(slot: ClientSlot, until: Millis, now: Millis): void;
  /** When the client was told to come back last; −Infinity when never. */
  promised(slot: ClientSlot): Millis;
  promise(slot: ClientSlot, at: Millis): void;
  view(now: Millis): ClientsView;
}
