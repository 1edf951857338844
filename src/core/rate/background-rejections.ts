import type { PerSecond } from '../scalars.ts';
import type { RateState } from './rate-state.ts';
import { MIN_GROWTH_PERIOD, feedbackDelay } from './rate-state.ts';

/** The least numbers of responses and rejections for an estimate, and the number above which old ones count half. */
const MIN_ANSWERS = 50;
const MIN_REJECTED = 6;
const MAX_ANSWERS = 500;
/** Up to this factor times the expected rejections, plus this number, is chance. */
const TOLERATED_FACTOR = 1.5;
const TOLERATED_EXTRA = 2;

/** The results at one rate, from one cut to the next. */
export interface RateCycle {
  readonly rate: PerSecond;
  readonly accepted: number;
  readonly rejected: number;
}

const MAX_CYCLES = 40;
/** Background rejections lower a rate in small steps: between consecutive cycles it falls or rises by no more than this. */
const MAX_FALL = 1 / 1.45;
const MAX_RISE = 1 / 0.75;
/** A cycle with at least this number and more than this share of rejections has met a limit. */
const LIMIT_MIN_REJECTED = 3;
const LIMIT_MIN_SHARE = 0.3;
/** Up to the first factor, a rate is near the present one. From the second on, a limit would reject at least half. */
const NEAR_FACTOR = 1.25;
const FAR_FACTOR = 2;
/** Shares within this factor count as equal. */
const SIMILAR_FACTOR = 2;
/** Smaller shares are the cost of probing. Larger shares are never taken as background. */
const MIN_BACKGROUND_SHARE = 0.01;
const MAX_BACKGROUND_SHARE = 0.15;
/** How much of the estimated share is kept at a cut. */
const SHARE_RETAINED = 0.75;

/**
 * Whether a rejection is independent of our rate: a route, a tenant or an object has a limit of its own. The share of such
 * background rejections is the same at any rate, so that no rate would be low enough. If the rate has fallen to a half in
 * small steps and the same share is rejected as at the beginning, that share is background. Rejections cut nothing until
 * their share exceeds it by half.
 */
export function isBackgroundRejection(state: RateState): boolean {
  const { recentAccepted, recentRejected, backgroundShare } = state;
  const answered = recentAccepted + recentRejected;
  if (answered > MAX_ANSWERS) {
    state.recentAccepted /= 2;
    state.recentRejected /= 2;
  }
  if (backgroundShare > 0 && recentRejected <= TOLERATED_EXTRA + TOLERATED_FACTOR * backgroundShare * answered) {
    return true;
  }
  const share = rateIndependentShare(state);
  if (share === undefined) return false;
  state.backgroundShare = share;
  restoreCeiling(state);
  return true;
}

/** The share of rejections that stayed the same while the rate fell to a half; undefined if it did not, or is unknown. */
function rateIndependentShare({ cycles, rate, recentAccepted, recentRejected }: RateState): number | undefined {
  const near = { accepted: recentAccepted, rejected: recentRejected };
  const above = { accepted: 0, rejected: 0 };
  for (const cycle of decreasingCycles(cycles, rate)) {
    const side = cycle.rate <= NEAR_FACTOR * rate ? near : cycle.rate >= FAR_FACTOR * rate ? above : undefined;
    if (side === undefined) continue;
    side.accepted += cycle.accepted;
    side.rejected += cycle.rejected;
  }
  const answeredNear = near.accepted + near.rejected;
  const answeredAbove = above.accepted + above.rejected;
  if (Math.min(answeredNear, answeredAbove) < MIN_ANSWERS) return undefined;
  if (Math.min(near.rejected, above.rejected) < MIN_REJECTED) return undefined;
  const shareNear = near.rejected / answeredNear;
  const shareAbove = above.rejected / answeredAbove;
  const areSimilar = shareAbove <= SIMILAR_FACTOR * shareNear && shareNear <= SIMILAR_FACTOR * shareAbove;
  const isBackground = areSimilar && shareNear >= MIN_BACKGROUND_SHARE && shareNear <= MAX_BACKGROUND_SHARE;
  return isBackground ? (shareNear + shareAbove) / 2 : undefined;
}

/** The last cycles, newest first, in which the rate fell to its present value in small steps. */
function decreasingCycles(cycles: readonly RateCycle[], rate: PerSecond): RateCycle[] {
  const fall: RateCycle[] = [];
  let last = rate;
  for (let i = cycles.length - 1; i >= 0; i -= 1) {
    const cycle = cycles[i];
    if (cycle === undefined || cycle.rate < last / MAX_RISE || cycle.rate > last / MAX_FALL) break;
    if (hasMetLimit(cycle)) break;
    fall.push(cycle);
    last = cycle.rate;
  }
  return fall;
}

/** Whether a limit was met, beyond background rejections. */
function hasMetLimit({ accepted, rejected }: RateCycle): boolean {
  return rejected >= LIMIT_MIN_REJECTED && rejected > LIMIT_MIN_SHARE * (accepted + rejected);
}

/** The rate before the fall was not too high: raises the ceiling to it, and grows back as fast as allowed. */
function restoreCeiling(state: RateState): void {
  const { cycles, rate } = state;
  const before = decreasingCycles(cycles, rate).at(-1)?.rate ?? rate;
  state.ceiling = Math.max(state.ceiling, before);
  state.rateAfterDecrease = rate;
  state.growthElapsed = 0;
  state.growthPeriod = Math.max(MIN_GROWTH_PERIOD, 6 * feedbackDelay(state));
}

/** A cut is evidence against background rejections: they may have come from the limit. Call it before the cut. */
export function discountBackgroundShare(state: RateState): void {
  const { rate, acceptedSinceDecrease, rejectedSinceDecrease, cycles } = state;
  state.backgroundShare *= SHARE_RETAINED;
  if (!Number.isFinite(rate)) return; // unpaced: these results belong to no rate
  cycles.push({ rate, accepted: acceptedSinceDecrease, rejected: rejectedSinceDecrease });
  if (cycles.length > MAX_CYCLES) cycles.shift();
}
