import type { Millis, Quota } from '../../core/exchange/attempt-outcome.ts';
import { above0, atLeast } from './check-range.ts';
import type { Admission, LimitModel } from './limit-model.ts';
import { ACCEPTED, NANOSECOND } from './limit-model.ts';

export interface FixedWindowSpec {
  readonly kind: 'fixed-window';
  /** Requests in a window, ≥ 1. */
  readonly limit: number;
  /** Length of a window. Windows start at its multiples, as those that follow a wall clock do. */
  readonly window: Millis;
}

/** So many requests between one tick of the clock and the next; around a tick, twice as many may pass at once. */
export class FixedWindow implements LimitModel {
  readonly #window: Millis;
  #limit: number;
  #index = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor({ limit, window }: FixedWindowSpec) {
    this.#limit = Math.floor(atLeast(1, limit, 'limit'));
    this.#window = above0(window, 'window');
  }

  get limit(): number {
    return this.#limit;
  }

  arrive(now: Millis): Admission {
    this.#turn(now);
    if (this.#count >= this.#limit) return { accepted: false, retryAfter: this.#left(now) };
    this.#count += 1;
    return ACCEPTED;
  }

  leave(): void {}

  quota(now: Millis): Quota {
    this.#turn(now);
    return {
      remaining: Math.max(0, this.#limit - this.#count),
      limit: this.#limit,
      resetIn: this.#left(now),
      window: this.#window,
    };
  }

  retarget(limit: number, now: Millis): void {
    this.#turn(now);
    this.#limit = Math.floor(atLeast(1, limit, 'limit'));
  }

  #left(now: Millis): Millis {
    return Math.max(0, (this.#index + 1) * this.#window - now);
  }

  #turn(now: Millis): void {
    const index = Math.floor((now + NANOSECOND) / this.#window);
    if (index <= this.#index) return;
    this.#index = index;
    this.#count = 0;
  }
}
