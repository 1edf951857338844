import type { Millis, PerSecond, Quota } from '../../core/exchange/attempt-outcome.ts';
import { above0, atLeast } from './check-range.ts';
import type { Admission, LimitModel } from './limit-model.ts';
import { ACCEPTED, NANOSECOND } from './limit-model.ts';

export interface TokenBucketSpec {
  readonly kind: 'token-bucket';
  /** Tokens that drip in, a second. */
  readonly rate: PerSecond;
  /** Tokens that a full bucket holds, ≥ 1. It starts full. */
  readonly burst: number;
}

/** A bucket that fills at a rate; a request takes a token or is refused. (Turner, IEEE Communications 24(10), 1986.) */
export class TokenBucket implements LimitModel {
  readonly #burst: number;
  #rate: PerSecond;
  #tokens: number;
  #at = Number.NEGATIVE_INFINITY;

  constructor({ rate, burst }: TokenBucketSpec) {
    this.#rate = above0(rate, 'rate');
    this.#burst = atLeast(1, burst, 'burst');
    this.#tokens = burst;
  }

  get limit(): PerSecond {
    return this.#rate;
  }

  arrive(now: Millis): Admission {
    this.#fill(now);
    if (this.#whole() < 1) return { accepted: false, retryAfter: ((1 - this.#tokens) * 1000) / this.#rate };
    this.#tokens = Math.max(0, this.#tokens - 1);
    return ACCEPTED;
  }

  leave(): void {}

  quota(now: Millis): Quota {
    this.#fill(now);
    return {
      remaining: this.#whole(),
      limit: this.#burst,
      resetIn: ((this.#burst - this.#tokens) * 1000) / this.#rate,
      window: (this.#burst * 1000) / this.#rate,
    };
  }

  retarget(limit: PerSecond, now: Millis): void {
    this.#fill(now);
    this.#rate = above0(limit, 'rate');
  }

  #whole(): number {
    return Math.floor(this.#tokens + (NANOSECOND * this.#rate) / 1000);
  }

  #fill(now: Millis): void {
    if (now <= this.#at) return;
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#at) * this.#rate) / 1000);
    this.#at = now;
  }
}
