import type { Millis } from '../../scalars.ts';

/** Minimum age of an estimate, as a share of the averaging time: a younger one counts as this old. */
const MIN_AGE = 0.1;

/**
 * The recent rate of requests: an exponentially weighted mean, corrected for its start from 0 (as in Adam, Kingma and Ba 2014,
 * algorithm 1).
 */
export class ConsumptionRate {
  readonly #averagingTime: Millis;
  /** Requests per millisecond, uncorrected, at `#at`. */
  #mean = 0;
  #at: Millis = 0;
  #since: Millis | undefined = undefined;

  constructor(averagingTime: Millis) {
    this.#averagingTime = averagingTime;
  }

  /** @param now of a clock that is never set back */
  onRequest(now: Millis): void {
    this.onRequests(1, now);
  }

  /** As `onRequest`, for several at once. */
  onRequests(count: number, now: Millis): void {
    this.#since ??= now;
    this.#mean = this.#decayed(now) + count / this.#averagingTime;
    this.#at = now;
  }

  /** Requests per millisecond; 0 before the first. */
  perMilli(now: Millis): number {
    if (this.#since === undefined) return 0;
    const age = Math.max(now - this.#since, MIN_AGE * this.#averagingTime);
    return this.#decayed(now) / (1 - Math.exp(-age / this.#averagingTime));
  }

  #decayed(now: Millis): number {
    return this.#mean * Math.exp((this.#at - now) / this.#averagingTime);
  }
}
