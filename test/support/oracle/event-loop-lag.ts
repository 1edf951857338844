import { atEnd } from '../at-end.ts';
import type { Millis } from '../../../src/core/scalars.ts';

const EVERY: Millis = 10;
const KEPT = 100;

/** Measures the recent event loop lag of this process, which runs the proxy, its clients and its upstream. */
export class EventLoopLag {
  readonly #lags: Millis[] = [];
  #last = performance.now();

  constructor() {
    const timer = setInterval(() => {
      this.#lags.push(this.#sinceLast());
      if (this.#lags.length > KEPT) this.#lags.shift();
      this.#last = performance.now();
    }, EVERY);
    atEnd(() => clearInterval(timer));
  }

  /** Returns the maximum of about the last second. */
  worstLag(): Millis {
    return Math.max(this.#sinceLast(), ...this.#lags) - EVERY;
  }

  #sinceLast(): Millis {
    return performance.now() - this.#last;
  }
}
