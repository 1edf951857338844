import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';

/** How late a token may be fetched without being lost: timers fire in whole milliseconds, and event loops stall. */
export const LATENESS: Millis = 10;

/**
 * GCRA: when may the next request leave? The generic cell rate algorithm (ITU-T I.371) without tolerance, kept as the
 * theoretical time of the last request instead of the next, so that a change of rate applies to the very next one. An
 * upstream without a burst rejects what comes early by anything: so being late is made up for, and idling is not.
 */
export class Pacer {
  #last = Number.NEGATIVE_INFINITY;

  /** How long until a token is free at this rate; 0 when one is. */
  delay(now: Millis, rate: PerSecond): Millis {
    if (rate === Number.POSITIVE_INFINITY) return 0;
    return Math.max(0, this.#last + 1000 / rate - now);
  }

  /**
   * Takes a token; only when `delay` is 0.
   * @param due when it was to be fetched: now, or a little before if whoever waited for it is late
   */
  take(due: Millis, rate: PerSecond): void {
    this.#last = Math.max(due, this.#last + 1000 / rate);
  }

  /** The theoretical time of the last request; −Infinity before there was one. */
  get last(): Millis {
    return this.#last;
  }

  /** What was to be fetched later than this will not be. */
  rewind(now: Millis): void {
    this.#last = Math.min(this.#last, now);
  }
}
