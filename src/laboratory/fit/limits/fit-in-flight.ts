import type { AttemptSeries } from './attempt-series.ts';
import { findThreshold, predictByLevel } from './best-threshold.ts';
import { computeInFlightLevels, listDepartures } from './in-flight-levels.ts';
import type { LimitFit } from './limit-fit.ts';

/** The limit on requests in flight that predicts a log best. @returns undefined if the log has no times, or no such limit */
export function fitInFlight(series: AttemptSeries): LimitFit | undefined {
  const departures = listDepartures(series);
  if (departures === undefined) return undefined;
  const levels = computeInFlightLevels(series, departures);
  const best = findThreshold(series, levels);
  if (best === undefined) return undefined;
  return { limit: { kind: 'concurrency', limit: best.limit }, predictions: predictByLevel(levels, best.limit) };
}
