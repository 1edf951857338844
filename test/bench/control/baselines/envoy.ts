import type { Millis, Random } from '../../../../src/core/scalars.ts';
import type { InFlightLimit, SampleContext } from './in-flight-meter.ts';
import { inFlightController } from './in-flight-meter.ts';
import { quantileOf } from './statistics.ts';

const MIN_IN_FLIGHT = 3;
const MAX_IN_FLIGHT = 1000;
const MIN_RTT_SAMPLES = 50;
const BUFFER = 0.25;
const JITTER = 0.15;
const QUANTILE = 0.5;
/** Two intervals without a default: those of the example in the documentation. */
const MIN_RTT_INTERVAL: Millis = 60_000;
const UPDATE_INTERVAL: Millis = 100;
/** So many updates in sequence that leave the limit at its least show that the minRTT is out of date. */
const MAX_UPDATES_AT_LEAST = 5;

export class GradientController implements InFlightLimit {
  readonly #random: Random;
  #samples: Millis[] = [];
  #minRtt: Millis = 0;
  /** While the minRTT is measured: the limit to restore. */
  #deferredLimit: number | undefined = MIN_IN_FLIGHT;
  #measuredSince: Millis = Number.NEGATIVE_INFINITY;
  #measureAt: Millis = Number.POSITIVE_INFINITY;
  #updateAt: Millis = 0;
  #updatesAtLeast = 0;
  limit = MIN_IN_FLIGHT;

  constructor(random: Random) {
    this.#random = random;
  }

  update(rtt: Millis, _among: number, _didDrop: boolean, { now }: Pick<SampleContext, 'now'>): void {
    this.#onTime(now);
    if (now - rtt < this.#measuredSince) return;
    this.#samples.push(rtt);
    if (this.#deferredLimit !== undefined && this.#samples.length >= MIN_RTT_SAMPLES) this.#endMeasurement(now);
  }

  /** What its timers do, at the first response after they are due. */
  #onTime(now: Millis): void {
    if (this.#deferredLimit !== undefined) return;
    if (now >= this.#updateAt) {
      this.#updateAt = now + UPDATE_INTERVAL;
      if (this.#samples.length > 0) this.#updateLimit();
    }
    if (now < this.#measureAt && this.#updatesAtLeast < MAX_UPDATES_AT_LEAST) return;
    this.#deferredLimit = this.limit;
    this.limit = MIN_IN_FLIGHT;
    this.#samples = [];
    this.#measuredSince = now;
  }

  #updateLimit(): void {
    const gradient = Math.max(0.5, Math.min(2, ((1 + BUFFER) * this.#minRtt) / this.#takeQuantile()));
    const scaled = gradient * this.limit;
    const before = this.limit;
    this.limit = Math.max(MIN_IN_FLIGHT, Math.min(MAX_IN_FLIGHT, Math.floor(scaled + Math.sqrt(scaled))));
    const isAtLeast = before === MIN_IN_FLIGHT && this.limit === MIN_IN_FLIGHT;
    this.#updatesAtLeast = isAtLeast ? this.#updatesAtLeast + 1 : 0;
  }

  #endMeasurement(now: Millis): void {
    this.#minRtt = this.#takeQuantile();
    this.limit = this.#deferredLimit ?? MIN_IN_FLIGHT;
    this.#deferredLimit = undefined;
    this.#updatesAtLeast = 0;
    this.#updateAt = now + UPDATE_INTERVAL;
    this.#measureAt = now + MIN_RTT_INTERVAL * (1 + JITTER * this.#random());
  }

  #takeQuantile(): Millis {
    const quantile = quantileOf(this.#samples, QUANTILE);
    this.#samples = [];
    return quantile;
  }
}

/**
 * Envoy's adaptive concurrency filter with its defaults: the limit × (1.25 minRTT ÷ median latency) + its square root, ten times a
 * second. The minRTT is the median of 50 requests with 3 in flight, measured again after a minute.
 * (envoy, source/extensions/filters/http/adaptive_concurrency/controller/gradient_controller.cc at 054694f.)
 */
export const ENVOY = inFlightController('envoy', (random) => new GradientController(random));
