import type { Millis, PerSecond, Quota } from '../../core/exchange/attempt-outcome.ts';
import { above0 } from './check-range.ts';
import type { Admission, LimitModel } from './limit-model.ts';
import { TokenBucket } from './token-bucket.ts';

export interface BlackoutSpec {
  readonly kind: 'blackout';
  /** Tokens that drip in, a second. */
  readonly rate: PerSecond;
  /** Tokens that a full bucket holds, ≥ 1. It starts full. */
  readonly burst: number;
  /** For how long nothing passes once a request has come too much. */
  readonly length: Millis;
}

/** A bucket that punishes: whoever asks for more than it holds is shut out for a while. What comes meanwhile does not prolong it. */
export class Blackout implements LimitModel {
  readonly #bucket: TokenBucket;
  readonly #length: Millis;
  #until = Number.NEGATIVE_INFINITY;

  constructor({ rate, burst, length }: BlackoutSpec) {
    this.#bucket = new TokenBucket({ kind: 'token-bucket', rate, burst });
    this.#length = above0(length, 'length');
  }

  get limit(): PerSecond {
    return this.#bucket.limit;
  }

  arrive(now: Millis): Admission {
    if (now >= this.#until) {
      const admission = this.#bucket.arrive(now);
      if (admission.accepted) return admission;
      this.#until = now + this.#length;
    }
    return { accepted: false, retryAfter: this.#until - now };
  }

  leave(): void {}

  quota(now: Millis): Quota {
    const quota = this.#bucket.quota(now);
    return now >= this.#until ? quota : { ...quota, remaining: 0, resetIn: this.#until - now };
  }

  retarget(limit: PerSecond, now: Millis): void {
    this.#bucket.retarget(limit, now);
  }
}
