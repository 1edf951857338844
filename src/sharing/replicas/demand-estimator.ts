import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';

/** What is needed is known by what was needed lately. */
const SMOOTHED_OVER: Millis = 300;
const COUNTED_OVER: Millis = 40;

/** How fast tokens of a limit are used here: exponentially weighted over 300 ms, counted over 40 ms at least. */
export class Need {
  #rate: PerSecond = 0;
  #countedAt: Millis = Number.NEGATIVE_INFINITY;
  #sendsThen = 0;

  get rate(): PerSecond {
    return this.#rate;
  }

  /** How many will be used in so long, if it goes on so; none where they are used one by one. @param sends so far */
  within(time: Millis, sends: number, now: Millis): number {
    const elapsed = now - this.#countedAt;
    if (elapsed >= COUNTED_OVER) {
      const rate = (1000 * (sends - this.#sendsThen)) / elapsed;
      this.#rate += (rate - this.#rate) * -Math.expm1(-elapsed / SMOOTHED_OVER);
      this.#sendsThen = sends;
      this.#countedAt = now;
    }
    return Math.floor((this.#rate * time) / 1000);
  }
}
