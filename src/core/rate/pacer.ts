import type { Millis, PerSecond } from '../scalars.ts';

/** How late a token may be taken without losing time: timers fire in whole milliseconds, and event loops stall. */
export const MAX_LATENESS: Millis = 10;

/**
 * Spaces requests by the generic cell rate algorithm (GCRA, ITU-T I.371) without tolerance. It keeps the theoretical time
 * of the last request instead of the next, so that a change of the rate applies to the next request. An upstream without a
 * burst rejects any early request; so a late request shortens the next interval, and idle time does not.
 */
export class Pacer {
  #last = Number.NEGATIVE_INFINITY;

  /** Time until a token is free at this rate; 0 if one is. */
  delay(now: Millis, rate: PerSecond): Millis {
    if (rate === Number.POSITIVE_INFINITY) return 0;
    return Math.max(0, this.#last + 1000 / rate - now);
  }

  /**
   * Takes a token: the next one, if `delay` is more than 0.
   * @param due when the token was due: now, or a little earlier if a timer fired late
   */
  take(due: Millis, rate: PerSecond): void {
    this.#last = Math.max(due, this.#last + 1000 / rate);
  }

  /** The theoretical time of the last request; −Infinity before the first. */
  get last(): Millis {
    return this.#last;
  }

  /** Cancels tokens that were taken for a time later than `now`. */
  rewind(now: Millis): void {
    this.#last = Math.min(this.#last, now);
  }
}
