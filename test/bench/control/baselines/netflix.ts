import type { Millis, Random } from '../../../../src/core/scalars.ts';
import type { InFlightLimit } from './in-flight-meter.ts';
import { inFlightController } from './in-flight-meter.ts';

export class AimdLimit implements InFlightLimit {
  limit = 20;

  update(rtt: Millis, among: number, didDrop: boolean): void {
    if (didDrop || rtt > 5000) this.limit = Math.max(1, Math.floor(0.9 * this.limit));
    else if (2 * among >= this.limit) this.limit = Math.min(200, this.limit + 1);
  }
}

const MAX_IN_FLIGHT = 1000;
const PROBE_MULTIPLIER = 30;

export class VegasLimit implements InFlightLimit {
  readonly #random: Random;
  #estimate = 20;
  #shortestRtt: Millis = 0;
  #sinceProbe = 0;
  #probeJitter: number;

  constructor(random: Random) {
    this.#random = random;
    this.#probeJitter = 0.5 + random() / 2;
  }

  get limit(): number {
    return Math.floor(this.#estimate);
  }

  update(rtt: Millis, among: number, didDrop: boolean): void {
    this.#sinceProbe += 1;
    const isProbe = this.#sinceProbe >= this.#probeJitter * PROBE_MULTIPLIER * this.#estimate;
    if (isProbe) {
      this.#probeJitter = 0.5 + this.#random() / 2;
      this.#sinceProbe = 0;
    }
    if (isProbe || this.#shortestRtt === 0 || rtt < this.#shortestRtt) this.#shortestRtt = rtt;
    else this.#estimate = Math.max(1, Math.min(MAX_IN_FLIGHT, this.#next(rtt, among, didDrop)));
  }

  /** Queue size = limit · (1 − shortest RTT ÷ RTT); α = 3 log₁₀, β = 6 log₁₀, threshold and step log₁₀ of the limit. */
  #next(rtt: Millis, among: number, didDrop: boolean): number {
    const estimate = this.#estimate;
    const unit = Math.max(1, Math.floor(Math.log10(estimate)));
    if (didDrop) return estimate - unit;
    if (2 * among < estimate) return estimate;
    const queue = Math.ceil(estimate * (1 - this.#shortestRtt / rtt));
    if (queue <= unit) return estimate + 6 * unit;
    if (queue < 3 * unit) return estimate + unit;
    return queue > 6 * unit ? estimate - unit : estimate;
  }
}

/**
 * Netflix's AIMDLimit: one more on an answer while half of the places are taken, 0.9 of them on a drop or after 5 s.
 * (com.netflix.concurrency.limits.limit.AIMDLimit: from 20 at first up to 200. Its least is 20 too, which most limits
 * here are below; it is 1 here, in its favour.)
 */
export const NETFLIX_AIMD = inFlightController('netflix-aimd', () => new AimdLimit());

/**
 * Netflix's VegasLimit with its defaults, in its own order: after TCP Vegas (Brakmo and Peterson, 1995) a queue is
 * detected by responses slower than the fastest.
 * (com.netflix.concurrency.limits.limit.VegasLimit at 141214d, Log10RootFunction at 37ee6de.)
 */
export const NETFLIX_VEGAS = inFlightController('netflix-vegas', (random) => new VegasLimit(random));
