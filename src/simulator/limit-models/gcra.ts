import type { Millis, PerSecond, Quota } from '../../core/exchange/attempt-outcome.ts';
import { above0, atLeast } from './check-range.ts';
import type { Admission, LimitModel } from './limit-model.ts';
import { ACCEPTED, NANOSECOND } from './limit-model.ts';

export interface GcraSpec {
  readonly kind: 'gcra';
  readonly rate: PerSecond;
  /** Requests that may come back to back after an idle time, ≥ 1. */
  readonly burst: number;
}

/**
 * The generic cell rate algorithm, virtual scheduling: a request conforms unless it is earlier than its theoretical
 * arrival time by more than the tolerance, here (burst − 1) intervals. (ITU-T I.371, annex A.)
 */
export class Gcra implements LimitModel {
  readonly #burst: number;
  #interval: Millis;
  /** Theoretical arrival time of the next request. */
  #tat = Number.NEGATIVE_INFINITY;

  constructor({ rate, burst }: GcraSpec) {
    this.#interval = 1000 / above0(rate, 'rate');
    this.#burst = atLeast(1, burst, 'burst');
  }

  get limit(): PerSecond {
    return 1000 / this.#interval;
  }

  arrive(now: Millis): Admission {
    const earliest = this.#tat - (this.#burst - 1) * this.#interval;
    if (now < earliest - NANOSECOND) return { accepted: false, retryAfter: earliest - now };
    this.#tat = Math.max(this.#tat, now) + this.#interval;
    return ACCEPTED;
  }

  leave(): void {}

  quota(now: Millis): Quota {
    const owed = Math.max(0, this.#tat - now);
    const spare = this.#burst * this.#interval - owed;
    return {
      remaining: Math.max(0, Math.floor((spare + NANOSECOND) / this.#interval)),
      limit: this.#burst,
      resetIn: owed,
      window: this.#burst * this.#interval,
    };
  }

  /** What is owed stays owed, in requests: as with a bucket, whose tokens do not change with the rate. */
  retarget(limit: PerSecond, now: Millis): void {
    const interval = 1000 / above0(limit, 'rate');
    if (this.#tat > now) this.#tat = now + ((this.#tat - now) * interval) / this.#interval;
    this.#interval = interval;
  }
}
