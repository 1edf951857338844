import type { Millis } from '../scalars.ts';

/** A rate is measured over this time at least, and over longer gaps not at all: nothing is known of what happened in them. */
const MIN_WINDOW: Millis = 2000;
const MAX_WINDOW: Millis = 10_000;

/** How fast a growing quantity grows, over the last window. */
export class ProgressRate {
  #from: Millis = Number.NEGATIVE_INFINITY;
  #value = 0;
  #perMilli: number | undefined = undefined;

  /** Returns the growth in a millisecond, above 0; undefined if it is not known. */
  update(value: number, now: Millis): number | undefined {
    const passed = now - this.#from;
    if (passed < MIN_WINDOW) return this.#perMilli;
    const perMilli = (value - this.#value) / passed;
    this.#perMilli = passed <= MAX_WINDOW && perMilli > 0 ? perMilli : undefined;
    this.#from = now;
    this.#value = value;
    return this.#perMilli;
  }
}
