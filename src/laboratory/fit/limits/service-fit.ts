/** A service that rejects nothing and works on a number of requests at a time, fitted to the times of a log. */
import type { Millis } from '../../../core/scalars.ts';
import { serviceLikelihood } from './service-likelihood.ts';

export interface ServiceFit {
  /** Requests that it works on at full speed at a time. */
  readonly workers: number;
  /** The fewest and the most workers with which the log is almost as likely. */
  readonly fewest: number;
  readonly most: number;
  /** The median and the mean time of a request that neither waits nor shares a worker, in ms. */
  readonly service: Millis;
  readonly mean: Millis;
  /** Requests that found every worker busy, and all that were examined. */
  readonly waited: number;
  readonly examined: number;
  /** How much likelier the log's times are than with times that do not depend on the number in flight, in nats. */
  readonly margin: number;
  /** The correlation of service times, as this service explains them, with the number in flight: near 0 for the right one. */
  readonly correlation: number;
  /** By which share the service times grow with each standard deviation of the number in flight. */
  readonly trend: number;
}

/** The service times that a number of workers implies, and their likelihood. */
export interface ServiceExplanation extends Omit<ServiceFit, 'margin' | 'fewest' | 'most'> {
  readonly likelihood: number;
  /** Requests that ended no later than these workers can have begun them. */
  readonly impossible: number;
}

/** Every number of workers up to this one is tried; beyond, in steps. */
const EACH_UP_TO = 64;
const STEP_RATIO = 1.05;
/** Fewer that waited do not show a queue. */
const MIN_WAITED = 50;
/** Requests that ended no later than they can have begun, as a share: times are not exact. */
const MAX_IMPOSSIBLE = 0.02;
/** Such a request is explained by chance, once in a thousand: in nats. Short times are likely, but not these. */
const IMPOSSIBLE_COST = Math.log(1000);
/** A number of workers is almost as likely as the best one if the log is less likely by no more than this, in nats. */
const ALMOST_AS_LIKELY = 5;
/** The resolution of times in logs. */
const RESOLUTION: Millis = 0.5;

/**
 * The number of workers with which the times of a log are the likeliest.
 * @param busiest the most requests that one of them met
 * @param explain for Infinity, with times that do not depend on the number in flight
 * @returns undefined if too few requests waited
 */
export function fitService(busiest: number, explain: (workers: number) => ServiceExplanation): ServiceFit | undefined {
  const tried: ServiceExplanation[] = [];
  for (let workers = 1; workers <= busiest; workers = nextNumber(workers)) {
    const explained = explain(workers);
    if (explained.waited < MIN_WAITED) break;
    if (explained.impossible <= MAX_IMPOSSIBLE * explained.examined) tried.push(explained);
  }
  const [first, ...others] = tried;
  if (first === undefined) return undefined;
  const best = others.reduce((likeliest, each) => (each.likelihood > likeliest.likelihood ? each : likeliest), first);
  const near = tried.filter((each) => each.likelihood > best.likelihood - ALMOST_AS_LIKELY);
  const { likelihood, impossible: _, ...fitted } = best;
  // The number of workers is one more number that is fitted: see `penalizedLikelihood`.
  const margin = likelihood - explain(Number.POSITIVE_INFINITY).likelihood - Math.log(best.examined) / 2;
  return { ...fitted, fewest: near[0]?.workers ?? best.workers, most: near.at(-1)?.workers ?? best.workers, margin };
}

function nextNumber(workers: number): number {
  return workers < EACH_UP_TO ? workers + 1 : Math.ceil(STEP_RATIO * workers);
}

/** Service times, and the number in flight that each request met. */
export class ServiceSample {
  readonly #services: Float64Array;
  #examined = 0;
  #waited = 0;
  #impossible = 0;
  /** The log has ends, and works are that much denser. */
  #logSpeed = 0;
  #sum = 0;
  #logs = 0;
  #logSquares = 0;
  #levelSum = 0;
  #levelSquares = 0;
  #products = 0;

  constructor(size: number) {
    this.#services = new Float64Array(size);
  }

  /** @param level requests that it met @param waits whether they delayed it @param speed of the work when it ended, in (0, 1] */
  add(time: Millis, level: number, waits: boolean, speed = 1): void {
    if (waits) this.#waited += 1;
    // With too few workers, a request begins when it ends itself.
    if (time <= 0) this.#impossible += 1;
    this.#logSpeed += Math.log(speed);
    const service = Math.max(RESOLUTION * speed, time);
    this.#services[this.#examined] = service;
    this.#examined += 1;
    const log = Math.log(service);
    this.#sum += service;
    this.#logs += log;
    this.#logSquares += log * log;
    this.#levelSum += level;
    this.#levelSquares += level * level;
    this.#products += log * level;
  }

  explain(workers: number): ServiceExplanation {
    const count = this.#examined;
    const mean = this.#logs / count;
    const variance = Math.max(0, this.#logSquares / count - mean * mean);
    const levelMean = this.#levelSum / count;
    const levelVariance = Math.max(0, this.#levelSquares / count - levelMean * levelMean);
    const covariance = this.#products / count - mean * levelMean;
    const spread = Math.sqrt(variance * levelVariance);
    const sums = { count, sum: this.#sum, logs: this.#logs, logSquares: this.#logSquares };
    return {
      workers,
      service: this.#services.subarray(0, count).toSorted()[count >> 1] ?? 0,
      mean: this.#sum / count,
      waited: this.#waited,
      examined: count,
      impossible: this.#impossible,
      likelihood: serviceLikelihood(sums) + this.#logSpeed - IMPOSSIBLE_COST * this.#impossible,
      correlation: spread === 0 ? 0 : covariance / spread,
      trend: levelVariance === 0 ? 0 : covariance / Math.sqrt(levelVariance),
    };
  }
}
