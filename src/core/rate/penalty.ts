import type { Millis, PerSecond } from '../scalars.ts';
import type { RateState, RevertibleRateState } from './rate-state.ts';

/** A shorter blackout, or Retry-After, may be the rest of a window. */
const MIN_PENALTY: Millis = 3000;
const LENGTH_TOLERANCE = 0.15;
/** Below this cost of a rejection, the other clients use what a client that is held leaves. */
const MIN_SECONDS_PER_REJECTION = 6;
const RATE_CUT = 0.95;
const CEILING_CUT = 0.85;

/** A window ends at a fixed time, a penalty after a fixed duration. */
export function isPenaltyBlackout(blackout: Millis, last: Millis): boolean {
  return blackout > MIN_PENALTY && Math.abs(blackout - last) < LENGTH_TOLERANCE * last;
}

/**
 * Whether the upstream names the same Retry-After at each rejection, and holding a client for so long costs much. A rest of a
 * window would be of another length each time.
 */
export function isPenaltyHint(
  { lastRetryAfterMs, secondsPerRejection }: RateState,
  retryAfterMs: Millis | undefined,
): boolean {
  return (
    retryAfterMs !== undefined &&
    retryAfterMs > MIN_PENALTY &&
    retryAfterMs === lastRetryAfterMs &&
    secondsPerRejection > MIN_SECONDS_PER_REJECTION
  );
}

/**
 * The rate and ceiling after a penalty: at the ceiling, the rate was about right. The ceiling is lowered if it was too high:
 * the rate has climbed fast past the limit, or the last cut was not enough.
 * @param ceiling the rate that was rejected
 * @param before the state before the rejection; undefined if more was sent than it allowed
 */
export function cutByPenalty(
  ceiling: PerSecond,
  before: Pick<RevertibleRateState, 'lastFinding' | 'growthElapsed' | 'growthPeriod'> | undefined,
): { readonly rate: PerSecond; readonly ceiling: PerSecond } {
  const isTooHigh =
    before !== undefined && (before.lastFinding === 'first-penalty' || before.growthElapsed < before.growthPeriod / 2);
  const lowered = isTooHigh ? CEILING_CUT * ceiling : ceiling;
  return { rate: RATE_CUT * lowered, ceiling: lowered };
}
