/**
 * Finds a service that queues: c workers that serve in the order of arrival (G/G/c). A request that finds q others at the service
 * begins when q − c + 1 of them have left, so the log shows the service time of each request for each c. For the right c these are
 * alike, however many were in flight; for a larger one they contain waits.
 * J. Kiefer and J. Wolfowitz, On the theory of queues with many servers, Trans. Amer. Math. Soc. 78 (1955).
 */
import type { AttemptSeries } from './attempt-series.ts';
import type { Departures } from './in-flight-levels.ts';
import { busiestLevel, computeInFlightLevels, listDepartures } from './in-flight-levels.ts';
import { UNKNOWN_LEVEL } from './best-threshold.ts';
import { fitService, type ServiceExplanation, type ServiceFit, ServiceSample } from './service-fit.ts';

/** @returns undefined if the log has no times, or too few requests waited */
export function fitQueue(series: AttemptSeries): ServiceFit | undefined {
  const departures = listDepartures(series);
  if (departures === undefined) return undefined;
  const levels = computeInFlightLevels(series, departures);
  return fitService(busiestLevel(departures, levels), (workers) => explain(series, departures, levels, workers));
}

function explain(
  { at }: AttemptSeries,
  { accepted, ends, sortedEnds }: Departures,
  levels: Int32Array,
  workers: number,
): ServiceExplanation {
  const sample = new ServiceSample(accepted.length);
  let ended = 0;
  for (const [k, i] of accepted.entries()) {
    const [arrived, level] = [at[i] ?? 0, levels[i] ?? 0];
    while (ended < k && (sortedEnds[ended] ?? 0) <= arrived) ended += 1;
    if (level === UNKNOWN_LEVEL) continue;
    const waits = level >= workers;
    const began = waits ? (sortedEnds[ended + level - workers] ?? 0) : arrived;
    sample.add((ends[k] ?? 0) - began, level, waits);
  }
  return sample.explain(workers);
}
