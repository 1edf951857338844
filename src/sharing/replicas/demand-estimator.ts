import type { Millis, PerSecond } from '../../core/scalars.ts';

const SMOOTHING_TIME: Millis = 300;
const MIN_SAMPLE_TIME: Millis = 40;

/** The rate at which this replica uses tokens: exponentially weighted over 300 ms, sampled over at least 40 ms. */
export class DemandEstimator {
  #rate: PerSecond = 0;
  #countedAt: Millis = Number.NEGATIVE_INFINITY;
  #sendsAtCount = 0;

  get rate(): PerSecond {
    return this.#rate;
  }

  /** The number of tokens expected to be used in `duration`, rounded down: 0 at low rates. @param sends all sends so far */
  expected(duration: Millis, sends: number, now: Millis): number {
    const elapsed = now - this.#countedAt;
    if (elapsed >= MIN_SAMPLE_TIME) {
      const rate = (1000 * (sends - this.#sendsAtCount)) / elapsed;
      this.#rate += (rate - this.#rate) * -Math.expm1(-elapsed / SMOOTHING_TIME);
      this.#sendsAtCount = sends;
      this.#countedAt = now;
    }
    return Math.floor((this.#rate * duration) / 1000);
  }
}
