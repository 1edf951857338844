import type { Millis } from '../../../../src/core/scalars.ts';
import type { InFlightLimit, SampleContext } from './in-flight-meter.ts';
import { inFlightController } from './in-flight-meter.ts';
import { covariance, MovingMean, quantileOf, RecentValues } from './statistics.ts';

const MIN_SAMPLES = 250;
const MIN_INTERVAL: Millis = 3000;
const QUANTILE = 0.9;
/** Of intervals. */
const HISTORY = 50;
/** Not in the article: the limit at first, the smoothing, how often the target is reset, and the bounds of the queue (those of Vegas). */
const FIRST_LIMIT = 20;
const SMOOTHED = 3;
const RESET_AFTER = 10;

export class CinnamonTuner implements InFlightLimit {
  readonly #medians = new RecentValues(SMOOTHED);
  readonly #latency = new MovingMean(SMOOTHED, 1);
  readonly #inFlights = new RecentValues(HISTORY);
  readonly #throughputs = new RecentValues(HISTORY);
  #target: Millis = Number.POSITIVE_INFINITY;
  #sinceReset = 0;
  #samples: Millis[] = [];
  #most = 0;
  #startedAt: Millis = 0;
  limit = FIRST_LIMIT;

  update(rtt: Millis, among: number, _didDrop: boolean, { now }: Pick<SampleContext, 'now'>): void {
    this.#samples.push(rtt);
    this.#most = Math.max(this.#most, among);
    if (this.#samples.length < MIN_SAMPLES || now - this.#startedAt < MIN_INTERVAL) return;
    this.#medians.add(quantileOf(this.#samples, QUANTILE));
    this.#onInterval(this.#latency.add(quantileOf(this.#medians.values, 0.5)), this.#most);
    this.#samples = [];
    this.#most = 0;
    this.#startedAt = now;
  }

  /** The queue at the service: the limit × (1 − target ÷ latency). Throughput by Little's law. */
  #onInterval(latency: Millis, most: number): void {
    this.#inFlights.add(most);
    this.#throughputs.add(most / latency);
    this.#sinceReset += 1;
    if (this.#sinceReset >= RESET_AFTER) {
      this.#sinceReset = 0;
      this.#target = latency;
      // A reset of the target during an overload would let latency and limit drift upwards.
      if (covariance(this.#inFlights.values, this.#throughputs.values) < 0) this.limit = Math.max(1, this.limit - 1);
      return;
    }
    this.#target = Math.min(this.#target, latency);
    const unit = Math.max(1, Math.floor(Math.log10(this.limit)));
    const queue = this.limit * (1 - this.#target / latency);
    if (queue > 6 * unit) this.limit = Math.max(1, this.limit - 1);
    else if (queue < 3 * unit && 2 * most >= this.limit) this.limit += 1;
  }
}

/**
 * The auto-tuner of Uber's Cinnamon, after TCP Vegas, behind the queue of every controller: by the p90 of at least 250 requests and 3 s,
 * with a target that is reset, and a lower limit where more in flight came with less throughput. Its PID controller, which chooses
 * among the requests that wait, needs priorities and is left out.
 * (Gavrilenko and Thomsen, "Cinnamon Auto-Tuner: Adaptive Concurrency in the Wild", Uber, December 2023.)
 */
export const CINNAMON = inFlightController('cinnamon', () => new CinnamonTuner(), { isQueued: true });
