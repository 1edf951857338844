import { onTestFinished } from 'vitest';
import type { Millis } from '../../../src/core/exchange/attempt-outcome.ts';

const EVERY: Millis = 10;
const KEPT = 100;

/** How late this process was lately. The proxy, its clients and its upstream are all in it. */
export class LoopWatch {
  readonly #lags: Millis[] = [];
  #last = performance.now();

  constructor() {
    const timer = setInterval(() => {
      this.#lags.push(this.#sinceLast());
      if (this.#lags.length > KEPT) this.#lags.shift();
      this.#last = performance.now();
    }, EVERY);
    onTestFinished(() => clearInterval(timer));
  }

  /** Of about the last second. */
  worstLag(): Millis {
    return Math.max(this.#sinceLast(), ...this.#lags) - EVERY;
  }

  #sinceLast(): Millis {
    return performance.now() - this.#last;
  }
}
