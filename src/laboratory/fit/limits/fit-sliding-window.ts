import type { Millis } from '../../../core/scalars.ts';
import { REFUSED } from '../log-excerpt.ts';
import type { AttemptSeries } from './attempt-series.ts';
import type { BestThreshold } from './best-threshold.ts';
import { findThreshold, predictByLevel, UNKNOWN_LEVEL } from './best-threshold.ts';
import type { LimitFit } from './limit-fit.ts';
import { COMMON_LENGTHS, lengthRange } from './window-lengths.ts';

/** The ratio of neighbouring lengths at first, and the ratios by which the best is refined. */
const COARSE_RATIO = 1.15;
const REFINEMENTS = [1.07, 1.035, 1.017, 1.008, 1.004, 1.002, 1.001];
/** A common length is taken instead of the best one if it is as near, and the log is less likely by no more nats. */
const COMMON_RATIO = 1.01;
const COMMON_MARGIN = 3;

interface SlidingFit extends BestThreshold {
  readonly window: Millis;
}

/** The sliding window (exact, of accepted requests) that predicts a log best. */
export function fitSlidingWindow(series: AttemptSeries): LimitFit | undefined {
  const { least, most } = lengthRange(series);
  const levels = new Int32Array(series.count);
  let best: SlidingFit | undefined;
  const tryLength = (window: Millis): void => {
    if (window < least || window > most) return;
    computeSlidingLevels(series, window, levels);
    const found = findThreshold(series, levels);
    if (found !== undefined && (best === undefined || found.likelihood > best.likelihood)) best = { ...found, window };
  };
  for (const window of COMMON_LENGTHS) tryLength(window);
  for (let window = least; window <= most; window *= COARSE_RATIO) tryLength(window);
  for (const ratio of REFINEMENTS) {
    const { window = 0 } = best ?? {};
    tryLength(window / ratio);
    tryLength(window * ratio);
  }
  const chosen = preferCommon(series, best, levels);
  if (chosen === undefined) return undefined;
  const { limit, window } = chosen;
  computeSlidingLevels(series, window, levels);
  return { limit: { kind: 'sliding-window', limit, window }, predictions: predictByLevel(levels, limit) };
}

function preferCommon(series: AttemptSeries, best: SlidingFit | undefined, levels: Int32Array): SlidingFit | undefined {
  const common = COMMON_LENGTHS.find(
    (each) => best !== undefined && Math.abs(Math.log(each / best.window)) < Math.log(COMMON_RATIO),
  );
  if (best === undefined || common === undefined) return best;
  computeSlidingLevels(series, common, levels);
  const found = findThreshold(series, levels);
  return found !== undefined && found.likelihood >= best.likelihood - COMMON_MARGIN
    ? { ...found, window: common }
    : best;
}

/** The number of accepted attempts within the last `window` before each. Unknown for so long after a gap. */
function computeSlidingLevels({ count, at, outcomes, gaps }: AttemptSeries, window: Millis, levels: Int32Array): void {
  let [oldest, level, nextGap, knownFrom] = [0, 0, 0, Number.NEGATIVE_INFINITY];
  for (let i = 0; i < count; i += 1) {
    const now = at[i] ?? 0;
    if (i === gaps[nextGap]) {
      nextGap += 1;
      knownFrom = now + window;
      [oldest, level] = [i, 0];
    }
    for (; oldest < i && (at[oldest] ?? 0) <= now - window; oldest += 1) if (outcomes[oldest] !== REFUSED) level -= 1;
    levels[i] = now < knownFrom ? UNKNOWN_LEVEL : level;
    if (outcomes[i] !== REFUSED) level += 1;
  }
}
