import type { Clock, Millis } from '../policy/types.ts';
import type { Lender } from '../state/leasing/lender.ts';

/** Wakes the lender when it has something to lend. */
export class LenderTimer {
  readonly #lender: Lender;
  readonly #clock: Clock;
  #timer: NodeJS.Timeout | undefined;
  #at: Millis = Number.POSITIVE_INFINITY;

  constructor(lender: Lender, clock: Clock) {
    this.#lender = lender;
    this.#clock = clock;
  }

  rearm(): void {
    const at = this.#lender.nextWake() ?? Number.POSITIVE_INFINITY;
    if (at >= this.#at) return; // an early wake does no harm
    clearTimeout(this.#timer);
    this.#at = at;
    this.#timer = setTimeout(this.#wake, Math.max(0, at - this.#clock.now())).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  readonly #wake = (): void => {
    this.#at = Number.POSITIVE_INFINITY;
    this.#lender.wake(this.#clock.now());
    this.rearm();
  };
}
