import type { Millis } from '../exchange/attempt-outcome.ts';
import type { RateState } from './rate-state.ts';
import { clamp, FAST_GROWTH, feltAfter, SLOW_GROWTH } from './rate-state.ts';

/** What probing may cost: one rejection for so many requests sent. */
export const SENT_PER_REJECTION = 130;
/** What a blackout may cost: one second in so many. */
const SECONDS_PER_SECOND_LOST = 10;
const SLOWEST_GROWTH: Millis = 600_000;
/** The shortest K, in round trips: a rate that grows faster than it is felt overshoots by as much as it was cut. */
const ROUND_TRIPS = 6;

/**
 * K: so long that what the next probe will lose is a small part of what is sent until then, and of the time until then.
 * A ceiling that is a guess is left behind sooner.
 */
export function planGrowth(state: RateState): Millis {
  const { found, usualLoss, lost, cost, rate } = state;
  const byTime = 1000 * SECONDS_PER_SECOND_LOST * cost;
  const fastest = Math.max(FAST_GROWTH, ROUND_TRIPS * feltAfter(state));
  if (found === 'penalty') return clamp(byTime, fastest, SLOWEST_GROWTH);
  if (found !== 'near') return clamp(byTime / 2, fastest, SLOW_GROWTH);
  const bySends = (1000 * SENT_PER_REJECTION * Math.max(usualLoss, lost)) / rate;
  return clamp(Math.max(bySends, byTime), fastest, SLOW_GROWTH);
}

/** How much of a cost is still believed at the next rejection: one long blackout is an accident, a series is a price. */
const FORGOTTEN = 0.7;

/** A rejection out of calm: what the one before has cost in all is known now. */
export function noteLoss(state: RateState): void {
  if (state.lost > 0 && state.found === 'near') state.usualLoss = (state.usualLoss + state.lost) / 2;
  state.lost = 0;
  state.cost *= FORGOTTEN;
  state.found = 'near';
}

/** Seconds lost to a rejection. Smoothed: one long blackout is an accident, a series of them is a price. */
export function noteCost(state: RateState, seconds: number): void {
  state.cost = (state.cost + seconds) / 2;
}
