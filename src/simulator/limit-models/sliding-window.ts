import type { Millis } from '../../core/scalars.ts';
import type { Quota } from '../../core/hints/hints.ts';
import { requirePositive, requireAtLeast } from './check-range.ts';
import type { LimitDecision, LimitModel } from './limit-model.ts';
import { ACCEPTED, TIME_TOLERANCE } from './limit-model.ts';
import { TimestampRing } from './timestamp-ring.ts';

export interface SlidingWindowSpec {
  /** `-counting`: rejected requests count too, so a client that does not pause stays rejected. */
  readonly kind: 'sliding-window' | 'sliding-window-counting';
  /** Requests within any window, ≥ 1. */
  readonly limit: number;
  readonly window: Millis;
}

/** A limit on requests in any window of this length, by an exact log of eight bytes a request. */
export class SlidingWindow implements LimitModel {
  readonly #countRejected: boolean;
  readonly #window: Millis;
  readonly #log = new TimestampRing();
  #limit: number;

  constructor({ kind, limit, window }: SlidingWindowSpec) {
    this.#countRejected = kind === 'sliding-window-counting';
    this.#limit = Math.floor(requireAtLeast(1, limit, 'limit'));
    this.#window = requirePositive(window, 'window');
  }

  get limit(): number {
    return this.#limit;
  }

  tryAcquire(now: Millis): LimitDecision {
    const log = this.#dropExpired(now);
    const accepted = log.length < this.#limit;
    if (accepted || this.#countRejected) log.push(now);
    return accepted
      ? ACCEPTED
      : { accepted: false, retryAfterMs: this.#timeUntilExpiry(log.length - this.#limit, now) };
  }

  release(): void {}

  quota(now: Millis): Quota {
    const log = this.#dropExpired(now);
    return {
      remaining: Math.max(0, this.#limit - log.length),
      limit: this.#limit,
      resetIn: log.length === 0 ? 0 : this.#timeUntilExpiry(log.length - 1, now),
      window: this.#window,
    };
  }

  setLimit(limit: number): void {
    this.#limit = Math.floor(requireAtLeast(1, limit, 'limit'));
  }

  #dropExpired(now: Millis): TimestampRing {
    this.#log.dropUntil(now - this.#window + TIME_TOLERANCE);
    return this.#log;
  }

  /** The time until the i-th entry of the log leaves the window, in ms. */
  #timeUntilExpiry(i: number, now: Millis): Millis {
    return this.#log.at(i) + this.#window - now;
  }
}
