import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { Quota } from '../../core/hints/hints.ts';
import { requirePositive } from './check-range.ts';
import type { LimitDecision, LimitModel } from './limit-model.ts';
import { TokenBucket } from './token-bucket.ts';

export interface BlackoutSpec {
  readonly kind: 'blackout';
  /** Tokens added a second. */
  readonly rate: PerSecond;
  /** The capacity of the bucket in tokens, ≥ 1. It starts full. */
  readonly burst: number;
  /** How long everything is rejected after one request too many, in ms. */
  readonly length: Millis;
}

/**
 * A token bucket with a penalty: after a rejection it rejects everything for a while. Requests during the penalty do not
 * extend it.
 */
export class Blackout implements LimitModel {
  readonly #bucket: TokenBucket;
  readonly #length: Millis;
  #blockedUntil = Number.NEGATIVE_INFINITY;

  constructor({ rate, burst, length }: BlackoutSpec) {
    this.#bucket = new TokenBucket({ kind: 'token-bucket', rate, burst });
    this.#length = requirePositive(length, 'length');
  }

  get limit(): PerSecond {
    return this.#bucket.limit;
  }

  tryAcquire(now: Millis): LimitDecision {
    if (now >= this.#blockedUntil) {
      const admission = this.#bucket.tryAcquire(now);
      if (admission.accepted) return admission;
      this.#blockedUntil = now + this.#length;
    }
    return { accepted: false, retryAfterMs: this.#blockedUntil - now };
  }

  release(): void {}

  quota(now: Millis): Quota {
    const quota = this.#bucket.quota(now);
    return now >= this.#blockedUntil ? quota : { ...quota, remaining: 0, resetIn: this.#blockedUntil - now };
  }

  setLimit(limit: PerSecond, now: Millis): void {
    this.#bucket.setLimit(limit, now);
  }
}
