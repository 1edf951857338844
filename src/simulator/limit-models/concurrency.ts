import type { Quota } from '../../core/hints/hints.ts';
import { requireAtLeast } from './check-range.ts';
import type { LimitDecision, LimitModel } from './limit-model.ts';
import { ACCEPTED } from './limit-model.ts';

export interface ConcurrencySpec {
  readonly kind: 'concurrency';
  /** Requests in flight, ≥ 1. */
  readonly limit: number;
}

const AT_LIMIT: LimitDecision = Object.freeze({ accepted: false, retryAfterMs: 0 });

/** A limit on requests in flight. */
export class Concurrency implements LimitModel {
  #limit: number;
  #inFlight = 0;

  constructor({ limit }: ConcurrencySpec) {
    this.#limit = Math.floor(requireAtLeast(1, limit, 'limit'));
  }

  get limit(): number {
    return this.#limit;
  }

  tryAcquire(): LimitDecision {
    if (this.#inFlight >= this.#limit) return AT_LIMIT;
    this.#inFlight += 1;
    return ACCEPTED;
  }

  /** @throws RangeError if nothing is in flight: a caller's mistake that would silently raise the limit */
  release(): void {
    if (this.#inFlight === 0) throw new RangeError('no request is in flight');
    this.#inFlight -= 1;
  }

  quota(): Quota {
    const remaining = Math.max(0, this.#limit - this.#inFlight);
    return { remaining, limit: this.#limit, resetIn: undefined, window: undefined };
  }

  /** Requests in flight beyond a lowered limit complete. */
  setLimit(limit: number): void {
    this.#limit = Math.floor(requireAtLeast(1, limit, 'limit'));
  }
}
