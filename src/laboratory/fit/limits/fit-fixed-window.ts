import type { Millis } from '../../../core/scalars.ts';
import { REFUSED } from '../log-excerpt.ts';
import type { AttemptSeries } from './attempt-series.ts';
import type { BestThreshold } from './best-threshold.ts';
import { findThreshold, predictByLevel, UNKNOWN_LEVEL } from './best-threshold.ts';
import type { LimitFit } from './limit-fit.ts';
import { listReopenings } from './reopenings.ts';
import { COMMON_LENGTHS, lengthRange, suggestLengths } from './window-lengths.ts';
import { findPhases } from './window-phase.ts';

/** The window of the clock that predicts a log best. @returns undefined if no refusal ended within the log */
export function fitFixedWindow(series: AttemptSeries): LimitFit | undefined {
  const reopenings = listReopenings(series);
  if (reopenings.count === 0) return undefined;
  const { least, most } = lengthRange(series);
  const lengths = [...COMMON_LENGTHS, ...suggestLengths(reopenings, least)].filter(
    (each) => each >= least && each <= most,
  );
  const levels = new Int32Array(series.count);
  let best: (BestThreshold & { readonly window: Millis; readonly phase: Millis }) | undefined;
  for (const window of lengths) {
    for (const phase of findPhases(reopenings, window)) {
      computeFixedLevels(series, window, phase, levels);
      const found = findThreshold(series, levels);
      if (found === undefined || (best !== undefined && found.likelihood <= best.likelihood)) continue;
      best = { ...found, window, phase };
    }
  }
  if (best === undefined) return undefined;
  const { limit, window, phase } = best;
  computeFixedLevels(series, window, phase, levels);
  return { limit: { kind: 'fixed-window', limit, window, phase }, predictions: predictByLevel(levels, limit) };
}

/** The number of accepted attempts in the same window before each. Unknown until the first window that the log has from its start. */
function computeFixedLevels(
  { count, at, outcomes, gaps }: AttemptSeries,
  window: Millis,
  phase: Millis,
  levels: Int32Array,
): void {
  let [index, level, nextGap] = [Number.NEGATIVE_INFINITY, UNKNOWN_LEVEL, 0];
  for (let i = 0; i < count; i += 1) {
    const current = Math.floor(((at[i] ?? 0) - phase) / window);
    if (i === gaps[nextGap]) {
      nextGap += 1;
      [index, level] = [current, UNKNOWN_LEVEL];
    } else if (current !== index) {
      [index, level] = [current, 0];
    }
    levels[i] = level;
    if (level !== UNKNOWN_LEVEL && outcomes[i] !== REFUSED) level += 1;
  }
}
