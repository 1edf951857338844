import type { Millis } from '../../core/scalars.ts';
import type { Quota } from '../../core/hints/hints.ts';
import { requirePositive, requireAtLeast } from './check-range.ts';
import type { LimitDecision, LimitModel } from './limit-model.ts';
import { ACCEPTED, TIME_TOLERANCE } from './limit-model.ts';

export interface FixedWindowSpec {
  readonly kind: 'fixed-window';
  /** Requests in a window, ≥ 1. */
  readonly limit: number;
  /** Length of a window in ms. Windows start at its multiples, as wall-clock windows do. */
  readonly window: Millis;
}

/** A limit on requests in each window of the clock. Around a boundary, twice the limit may pass at once. */
export class FixedWindow implements LimitModel {
  readonly #window: Millis;
  #limit: number;
  #index = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor({ limit, window }: FixedWindowSpec) {
    this.#limit = Math.floor(requireAtLeast(1, limit, 'limit'));
    this.#window = requirePositive(window, 'window');
  }

  get limit(): number {
    return this.#limit;
  }

  tryAcquire(now: Millis, cost = 1): LimitDecision {
    this.#rollWindow(now);
    if (this.#count + cost > this.#limit) return { accepted: false, retryAfterMs: this.#timeToReset(now) };
    this.#count += cost;
    return ACCEPTED;
  }

  release(): void {}

  quota(now: Millis): Quota {
    this.#rollWindow(now);
    return {
      remaining: Math.max(0, this.#limit - this.#count),
      limit: this.#limit,
      resetIn: this.#timeToReset(now),
      window: this.#window,
    };
  }

  setLimit(limit: number, now: Millis): void {
    this.#rollWindow(now);
    this.#limit = Math.floor(requireAtLeast(1, limit, 'limit'));
  }

  #timeToReset(now: Millis): Millis {
    return Math.max(0, (this.#index + 1) * this.#window - now);
  }

  #rollWindow(now: Millis): void {
    const index = Math.floor((now + TIME_TOLERANCE) / this.#window);
    if (index <= this.#index) return;
    this.#index = index;
    this.#count = 0;
  }
}
