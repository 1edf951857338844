import type { Millis, PerSecond } from './types.ts';

/** How early a token may be taken without counting as early: absorbs timers that fire in whole milliseconds. */
export const PACING_TOLERANCE: Millis = 10;

/**
 * GCRA: when may the next request leave? The generic cell rate algorithm (ITU-T I.371), kept as the theoretical time of
 * the last request instead of the next, so that a change of rate applies to the very next one.
 */
export class Pacer {
  #last = Number.NEGATIVE_INFINITY;

  /** How long until a token is free at this rate; 0 when one is. */
  delay(now: Millis, rate: PerSecond): Millis {
    if (rate === Number.POSITIVE_INFINITY) return 0;
    return Math.max(0, this.#last + 1000 / rate - PACING_TOLERANCE - now);
  }

  /** Takes a token; only when `delay` is 0. */
  take(now: Millis, rate: PerSecond): void {
    this.#last = Math.max(now, this.#last + 1000 / rate);
  }
}
