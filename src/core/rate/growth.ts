import type { Millis, PerSecond } from '../scalars.ts';
import type { SendHistory } from './send-history.ts';
import { DELTA } from './decrease.ts';
import { planFastestGrowthPeriod } from './probe-planner.ts';
import type { RateSettings, RateState } from './rate-state.ts';

/** Below this share of the rate, with nothing queued, demand is the limit and growth would show nothing. */
const USED_SHARE = 0.6;
const FULLY_USED_SHARE = 0.9;
/** Without a rejection for this long, at a rate that is not used up, the limit counts as gone. */
const CALM_PERIOD: Millis = 120_000;

/**
 * Cubic growth (the window curve of RFC 9438, over a rate): flat near the ceiling, steep away from it.
 * Restore: ceiling − (ceiling − cut)(1 − u/K)³ for u < K. Probe: ceiling · (1 + δ((u − K)/(K/2))³) above.
 */
export function cubicGrowthRate({ ceiling, rateAfterDecrease, growthElapsed, growthPeriod }: RateState): PerSecond {
  if (growthElapsed < growthPeriod) {
    return ceiling - (ceiling - rateAfterDecrease) * (1 - growthElapsed / growthPeriod) ** 3;
  }
  return ceiling * (1 + DELTA * ((growthElapsed - growthPeriod) / (growthPeriod / 2)) ** 3);
}

/** This factor above the ceiling without a rejection, the ceiling is stale. */
const STALE_FACTOR = 1.2;

/** Whether the limit must be far above the ceiling. */
export function isCeilingStale({ rate, ceiling, growthElapsed, growthPeriod }: RateState): boolean {
  return growthElapsed > growthPeriod && rate > STALE_FACTOR * ceiling;
}

/** Continues from the same point of the curve with a shorter K, because the ceiling is only a guess. */
export function accelerateGrowth(state: RateState, growthPeriod: Millis): void {
  if (growthPeriod >= state.growthPeriod) return;
  state.growthElapsed *= growthPeriod / state.growthPeriod;
  state.growthPeriod = growthPeriod;
}

/** Grows the rate for `elapsed`. @param rules the curve, when its ceiling is stale, and how fast it grows then */
export function advanceGrowth(
  state: RateState,
  { maxRate }: RateSettings,
  rules: {
    readonly cubicGrowthRate: (state: RateState) => PerSecond;
    readonly isCeilingStale: (state: RateState) => boolean;
    readonly planGrowthPeriod: (state: RateState) => Millis;
  },
  elapsed: Millis,
): void {
  state.growthElapsed += elapsed;
  state.rate = Math.min(maxRate, Math.max(state.rate, rules.cubicGrowthRate(state)));
  if (!rules.isCeilingStale(state)) return;
  // After a first penalty the limit may be anywhere above: no window has been used up.
  const period =
    state.lastFinding === 'first-penalty'
      ? planFastestGrowthPeriod(state)
      : rules.planGrowthPeriod({ ...state, lastFinding: 'moved' });
  accelerateGrowth(state, period);
}

/**
 * Whether demand is the limit, so that growth would show nothing. Below the ceiling, a rate grows while much of it is used
 * or requests wait. Beyond the ceiling it grows only while it is used up: else the rate would rise without being tried.
 */
export function isApplicationLimited(state: RateState, recent: SendHistory, now: Millis, queued: boolean): boolean {
  const sent = recent.sentRate(now, 1000);
  if (state.growthElapsed >= state.growthPeriod) return sent + state.meanCost < FULLY_USED_SHARE * state.rate;
  return !queued && sent < USED_SHARE * state.rate;
}

export function isCalm(state: RateState, now: Millis): boolean {
  return now - Math.max(state.lastRejectedAt, state.decreasedAt) > CALM_PERIOD;
}
