/**
 * Finds a service that queues: c workers that serve in the order of arrival (G/G/c). A request that finds q others at the service
 * begins when q − c + 1 of them have left, so the log shows the service time of each request for each c. For the right c these are
 * alike, however many were in flight; for a larger one they contain waits.
 * J. Kiefer and J. Wolfowitz, On the theory of queues with many servers, Trans. Amer. Math. Soc. 78 (1955).
 */
import type { Millis } from '../../../core/scalars.ts';
import type { AttemptSeries } from './attempt-series.ts';
import type { Departures } from './in-flight-levels.ts';
import { computeInFlightLevels, listDepartures } from './in-flight-levels.ts';
import { UNKNOWN_LEVEL } from './best-threshold.ts';
import { serviceLikelihood } from './service-likelihood.ts';

export interface QueueFit {
  readonly workers: number;
  /** The median time of a worker, in ms. */
  readonly service: Millis;
  /** Requests that found every worker busy, and all that were examined. */
  readonly waited: number;
  readonly examined: number;
  /** How much likelier the log's times are than with times that do not depend on the number in flight, in nats. */
  readonly margin: number;
  /** The correlation of service times, as this queue explains them, with the number in flight: near 0 for a queue. */
  readonly correlation: number;
}

/** Every number of workers up to this one is tried; beyond, in steps. */
const EACH_UP_TO = 64;
const STEP_RATIO = 1.05;
/** Fewer that waited do not show a queue. */
const MIN_WAITED = 50;
/** Requests that ended no later than they can have begun, as a share: times are not exact. */
const MAX_IMPOSSIBLE = 0.02;
/** The resolution of times in logs. */
const RESOLUTION: Millis = 0.5;

/** @returns undefined if the log has no times, or too few requests waited */
export function fitQueue(series: AttemptSeries): QueueFit | undefined {
  const departures = listDepartures(series);
  if (departures === undefined) return undefined;
  const levels = computeInFlightLevels(series, departures);
  const busiest = departures.accepted.reduce((most, i) => Math.max(most, levels[i] ?? 0), 0);
  const free = explain(series, departures, levels, Number.POSITIVE_INFINITY);
  let best: Explanation | undefined;
  for (let workers = 1; workers <= busiest; workers = nextNumber(workers)) {
    const explained = explain(series, departures, levels, workers);
    if (explained.waited < MIN_WAITED) break;
    if (explained.impossible > MAX_IMPOSSIBLE * explained.examined) continue;
    if (best === undefined || explained.likelihood > best.likelihood) best = explained;
  }
  if (best === undefined) return undefined;
  const { workers, service, waited, examined, likelihood, correlation } = best;
  // The number of workers is one more number that is fitted: see `penalizedLikelihood`.
  const margin = likelihood - free.likelihood - Math.log(examined) / 2;
  return { workers, service, waited, examined, margin, correlation };
}

function nextNumber(workers: number): number {
  return workers < EACH_UP_TO ? workers + 1 : Math.ceil(STEP_RATIO * workers);
}

interface Explanation extends Omit<QueueFit, 'margin'> {
  readonly likelihood: number;
  /** Requests that ended no later than these workers can have begun them. */
  readonly impossible: number;
}

/** The service times that this number of workers implies, and their likelihood. */
function explain(
  { at }: AttemptSeries,
  { accepted, ends, sortedEnds }: Departures,
  levels: Int32Array,
  workers: number,
): Explanation {
  const services = new Float64Array(accepted.length);
  let [waited, examined, impossible] = [0, 0, 0];
  let [sum, logs, logSquares, levelSum, levelSquares, products] = [0, 0, 0, 0, 0, 0];
  let ended = 0;
  for (const [k, i] of accepted.entries()) {
    const [arrived, level] = [at[i] ?? 0, levels[i] ?? 0];
    while (ended < k && (sortedEnds[ended] ?? 0) <= arrived) ended += 1;
    if (level === UNKNOWN_LEVEL) continue;
    const waits = level >= workers;
    if (waits) waited += 1;
    const began = waits ? (sortedEnds[ended + level - workers] ?? 0) : arrived;
    const time = (ends[k] ?? 0) - began;
    // With too few workers, a request begins when it ends itself.
    if (time <= 0) impossible += 1;
    const service = Math.max(RESOLUTION, time);
    services[examined] = service;
    examined += 1;
    const log = Math.log(service);
    sum += service;
    logs += log;
    logSquares += log * log;
    levelSum += level;
    levelSquares += level * level;
    products += log * level;
  }
  const mean = logs / examined;
  const variance = Math.max(0, logSquares / examined - mean * mean);
  const levelMean = levelSum / examined;
  const levelVariance = Math.max(0, levelSquares / examined - levelMean * levelMean);
  const spread = Math.sqrt(variance * levelVariance);
  return {
    workers,
    service: services.subarray(0, examined).toSorted()[examined >> 1] ?? 0,
    waited,
    examined,
    impossible,
    likelihood: serviceLikelihood({ count: examined, sum, logs, logSquares }),
    correlation: spread === 0 ? 0 : (products / examined - mean * levelMean) / spread,
  };
}
