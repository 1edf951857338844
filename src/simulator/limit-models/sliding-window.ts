import type { Millis, Quota } from '../../core/exchange/attempt-outcome.ts';
import { above0, atLeast } from './check-range.ts';
import type { Admission, LimitModel } from './limit-model.ts';
import { ACCEPTED, NANOSECOND } from './limit-model.ts';
import { TimeLog } from './timestamp-ring.ts';

export interface SlidingWindowSpec {
  /** `-counting`: refused requests count too, so a caller who does not pause stays out. */
  readonly kind: 'sliding-window' | 'sliding-window-counting';
  /** Requests within any window, ≥ 1. */
  readonly limit: number;
  readonly window: Millis;
}

/** So many requests in every stretch of time of this length, by an exact log: eight bytes for each request in it. */
export class SlidingWindow implements LimitModel {
  readonly #countRefused: boolean;
  readonly #window: Millis;
  readonly #log = new TimeLog();
  #limit: number;

  constructor({ kind, limit, window }: SlidingWindowSpec) {
    this.#countRefused = kind === 'sliding-window-counting';
    this.#limit = Math.floor(atLeast(1, limit, 'limit'));
    this.#window = above0(window, 'window');
  }

  get limit(): number {
    return this.#limit;
  }

  arrive(now: Millis): Admission {
    const log = this.#upTo(now);
    const accepted = log.length < this.#limit;
    if (accepted || this.#countRefused) log.push(now);
    return accepted ? ACCEPTED : { accepted: false, retryAfter: this.#until(log.length - this.#limit, now) };
  }

  leave(): void {}

  quota(now: Millis): Quota {
    const log = this.#upTo(now);
    return {
      remaining: Math.max(0, this.#limit - log.length),
      limit: this.#limit,
      resetIn: log.length === 0 ? 0 : this.#until(log.length - 1, now),
      window: this.#window,
    };
  }

  retarget(limit: number): void {
    this.#limit = Math.floor(atLeast(1, limit, 'limit'));
  }

  #upTo(now: Millis): TimeLog {
    this.#log.dropUntil(now - this.#window + NANOSECOND);
    return this.#log;
  }

  /** How long until the i-th of the log leaves the window. */
  #until(i: number, now: Millis): Millis {
    return this.#log.at(i) + this.#window - now;
  }
}
