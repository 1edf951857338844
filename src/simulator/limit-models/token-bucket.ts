import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { Quota } from '../../core/hints/hints.ts';
import { requirePositive, requireAtLeast } from './check-range.ts';
import type { LimitDecision, LimitModel } from './limit-model.ts';
import { ACCEPTED, TIME_TOLERANCE } from './limit-model.ts';

export interface TokenBucketSpec {
  readonly kind: 'token-bucket';
  /** Tokens added a second. */
  readonly rate: PerSecond;
  /** The capacity of the bucket in tokens, ≥ 1. It starts full. */
  readonly burst: number;
}

/** A bucket that fills at a rate; a request takes a token or is rejected. (Turner, IEEE Communications 24(10), 1986.) */
export class TokenBucket implements LimitModel {
  readonly #burst: number;
  #rate: PerSecond;
  #tokens: number;
  #refilledAt = Number.NEGATIVE_INFINITY;

  constructor({ rate, burst }: TokenBucketSpec) {
    this.#rate = requirePositive(rate, 'rate');
    this.#burst = requireAtLeast(1, burst, 'burst');
    this.#tokens = burst;
  }

  get limit(): PerSecond {
    return this.#rate;
  }

  tryAcquire(now: Millis, cost = 1): LimitDecision {
    this.#refill(now);
    const missing = cost - this.#tokens;
    if (this.#wholeTokens() < cost) return { accepted: false, retryAfterMs: (missing * 1000) / this.#rate };
    this.#tokens = Math.max(0, this.#tokens - cost);
    return ACCEPTED;
  }

  release(): void {}

  quota(now: Millis): Quota {
    this.#refill(now);
    return {
      remaining: this.#wholeTokens(),
      limit: this.#burst,
      resetIn: ((this.#burst - this.#tokens) * 1000) / this.#rate,
      window: (this.#burst * 1000) / this.#rate,
    };
  }

  setLimit(limit: PerSecond, now: Millis): void {
    this.#refill(now);
    this.#rate = requirePositive(limit, 'rate');
  }

  #wholeTokens(): number {
    return Math.floor(this.#tokens + (TIME_TOLERANCE * this.#rate) / 1000);
  }

  #refill(now: Millis): void {
    if (now <= this.#refilledAt) return;
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#refilledAt) * this.#rate) / 1000);
    this.#refilledAt = now;
  }
}
