import type { Millis, PerSecond } from '../scalars.ts';
import type { CutCause } from '../limits/limit-state.ts';
import type { SendHistory } from './send-history.ts';
import { DELTA } from './decrease.ts';
import type { RateState } from './rate-state.ts';

const SECOND: Millis = 1000;
/** Long enough to average out chance, short enough to follow a limit that changes. */
const MEASURED_SPAN: Millis = 5 * SECOND;

/**
 * Estimates an overrun limit by what it accepts: no search is needed. Uses those of the last five whole seconds before the
 * rejected request was sent that contain a rejection, less δ for safety. An upstream without bursts accepts fewer unpaced
 * requests than paced ones, so the estimate is a lower bound.
 *
 * @param history in buckets of a second
 * @returns undefined if there is no such second
 */
export function estimateFromOverrun(
  history: SendHistory,
  sentAt: Millis,
): { readonly rate: PerSecond; readonly ceiling: PerSecond } | undefined {
  const end = SECOND * Math.floor(sentAt / SECOND) - 1;
  const acceptedRate = history.acceptedWhereRejected(end, MEASURED_SPAN - 1);
  if (acceptedRate === undefined) return undefined;
  // Under a long window nothing is accepted in some seconds: they alone are no measure.
  const ceiling = Math.max(acceptedRate, history.acceptedRate(end, MEASURED_SPAN - 1));
  return { rate: (1 - DELTA) * ceiling, ceiling };
}

/**
 * Applies a new estimate during an overrun. A long overrun is one cut, reported at its beginning. There is no growth while
 * the measured span contains rejections.
 * @param applyEstimate makes the cut
 */
export function continueEstimate(state: RateState, applyEstimate: () => void, now: Millis): CutCause | undefined {
  const { phase } = state;
  applyEstimate();
  state.growthPausedUntil = Math.max(state.growthPausedUntil, now + MEASURED_SPAN);
  if (phase === 'restoring') return 'small';
  state.phase = phase;
  return undefined;
}
