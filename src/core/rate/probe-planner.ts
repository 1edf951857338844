import type { Millis } from '../scalars.ts';
import type { RateState } from './rate-state.ts';
import { clamp, MIN_GROWTH_PERIOD, feedbackDelay, MAX_GROWTH_PERIOD } from './rate-state.ts';

/** The budget of probing: one rejection per this many requests sent. */
export const SENT_PER_REJECTION = 130;
/** The budget of blackouts: one second in this many. */
const SECONDS_PER_LOST_SECOND = 10;
const MAX_PENALTY_GROWTH_PERIOD: Millis = 600_000;
/** The shortest K, in round trips: a rate that grows faster than its feedback arrives overshoots by as much as it was cut. */
const ROUND_TRIPS = 6;

/** How many times K it takes until the ceiling is stale: see `isCeilingStale`. */
const STALE_AFTER = 1.8;

/**
 * Plans K, so that the loss of the next probe is a small part of the requests sent until then, and of the time until then.
 * A ceiling that is a guess is exceeded sooner. After a first penalty it is stale after as long as the blackout was: a window
 * would have been used up again by then.
 */
export function planGrowthPeriod(state: RateState): Millis {
  const { lastFinding, lastBlackout, usualProbeLoss, probeLoss, secondsPerRejection, rate, meanCost } = state;
  const byTime = 1000 * SECONDS_PER_LOST_SECOND * secondsPerRejection;
  const fastest = planFastestGrowthPeriod(state);
  if (lastFinding === 'penalty') return clamp(byTime, fastest, MAX_PENALTY_GROWTH_PERIOD);
  if (lastFinding === 'first-penalty') return clamp(lastBlackout / STALE_AFTER, fastest, MAX_GROWTH_PERIOD);
  if (lastFinding !== 'near') return clamp(byTime / 2, fastest, MAX_GROWTH_PERIOD);
  const bySends = (1000 * SENT_PER_REJECTION * Math.max(usualProbeLoss, probeLoss) * meanCost) / rate;
  return clamp(Math.max(bySends, byTime), fastest, MAX_GROWTH_PERIOD);
}

/** The shortest K. */
export function planFastestGrowthPeriod(state: RateState): Millis {
  return Math.max(MIN_GROWTH_PERIOD, ROUND_TRIPS * feedbackDelay(state));
}

/** The share of a cost that is kept at the next rejection: one long blackout may be an accident, a series is the cost of probing. */
const COST_RETAINED = 0.7;

/** A rejection out of a calm state: the total cost of the one before is known now. */
export function recordProbeLoss(state: RateState): void {
  if (state.probeLoss > 0 && state.lastFinding === 'near') {
    state.usualProbeLoss = (state.usualProbeLoss + state.probeLoss) / 2;
  }
  state.probeLoss = 0;
  state.secondsPerRejection *= COST_RETAINED;
  state.lastFinding = 'near';
}

/** Adds the seconds lost to a rejection, smoothed. */
export function recordRejectionCost(state: RateState, seconds: number): void {
  state.secondsPerRejection = (state.secondsPerRejection + seconds) / 2;
}
