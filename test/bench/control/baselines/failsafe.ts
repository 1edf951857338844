import type { Millis } from '../../../../src/core/scalars.ts';
import type { InFlightLimit, SampleContext } from './in-flight-meter.ts';
import { inFlightController } from './in-flight-meter.ts';
import { covariance, MovingMean, quantileOf, RecentValues, variation } from './statistics.ts';

const MAX_IN_FLIGHT = 200;
const MAX_OF_IN_FLIGHT = 5;
const MIN_SAMPLES = 50;
const MIN_WINDOW: Millis = 1000;
const MAX_WINDOW: Millis = 30_000;
const QUANTILE = 0.9;
const SMOOTHED = 5;
const BASELINE = 10;
const FIRST = 10;
const CORRELATED = 50;
const LEAST_VARIATION = 0.01;

export class FailsafeLimit implements InFlightLimit {
  readonly #medians = new RecentValues(SMOOTHED);
  readonly #recentRtt = new MovingMean(SMOOTHED, FIRST);
  readonly #baselineRtt = new MovingMean(BASELINE, FIRST);
  readonly #inFlights = new RecentValues(CORRELATED);
  readonly #throughputs = new RecentValues(CORRELATED);
  readonly #rtts = new RecentValues(CORRELATED);
  #samples: Millis[] = [];
  #most = 0;
  #updateAt: Millis = 0;
  limit = 20;

  update(rtt: Millis, among: number, _didDrop: boolean, { now, inFlight }: SampleContext): void {
    this.#samples.push(rtt);
    this.#most = Math.max(this.#most, among);
    if (now <= this.#updateAt || this.#samples.length < MIN_SAMPLES) return;
    const quantile = quantileOf(this.#samples, QUANTILE);
    this.#medians.add(quantile);
    const isFull = this.#medians.values.length === SMOOTHED;
    const recent = this.#recentRtt.add(isFull ? quantileOf(this.#medians.values, 0.5) : quantile);
    this.#updateLimit(recent, this.#most, inFlight >= this.limit);
    this.#updateAt = now + Math.min(MAX_WINDOW, Math.max(MIN_WINDOW, 2 * Math.min(...this.#samples)));
    this.#samples = [];
    this.#most = 0;
  }

  #updateLimit(recent: Millis, most: number, isOverloaded: boolean): void {
    const unit = Math.max(1, Math.floor(Math.log10(this.limit)));
    const queue = Math.ceil(this.limit * (1 - this.#baselineRtt.add(recent) / recent));
    this.#inFlights.add(most);
    this.#throughputs.add(most / recent);
    this.#rtts.add(recent);
    const mostAllowed = MAX_OF_IN_FLIGHT * most;
    const next = this.limit + unit * this.#direction(queue, unit, isOverloaded);
    const bounded = next <= mostAllowed ? next : this.limit > mostAllowed ? this.limit - unit : mostAllowed;
    this.limit = Math.max(1, Math.min(MAX_IN_FLIGHT, bounded));
  }

  #direction(queue: number, unit: number, isOverloaded: boolean): -1 | 0 | 1 {
    const ofThroughput = correlation(this.#inFlights.values, this.#throughputs.values);
    const ofRtt = correlation(this.#inFlights.values, this.#rtts.values);
    const isFlat = ofThroughput < 0.3 || variation(this.#throughputs.values) < 0.2;
    const gainsNothing = ofThroughput < 0 || (isFlat && ofRtt > 0.5);
    if (queue > 6 * unit || (isOverloaded && gainsNothing)) return -1;
    return queue < 3 * unit ? 1 : 0;
  }
}

/** 0 before there are ten values, or where one of the series hardly varies. */
function correlation(xs: readonly number[], ys: readonly number[]): number {
  if (xs.length < FIRST || variation(xs) < LEAST_VARIATION || variation(ys) < LEAST_VARIATION) return 0;
  return covariance(xs, ys) / Math.sqrt(covariance(xs, xs) * covariance(ys, ys));
}

/**
 * The adaptive limiter of failsafe-go with its defaults, which is without a queue: a limit as Vegas', by the smoothed p90 of windows of a
 * second and its moving mean, that also shrinks while more in flight bring latency and no throughput.
 * (failsafe-go 0.9.7, adaptivelimiter/adaptivelimiter.go at a150f11. A failure counts by its latency.)
 */
export const FAILSAFE = inFlightController('failsafe', () => new FailsafeLimit());
