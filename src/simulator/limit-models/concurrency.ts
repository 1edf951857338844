import type { Quota } from '../../core/exchange/attempt-outcome.ts';
import { atLeast } from './check-range.ts';
import type { Admission, LimitModel } from './limit-model.ts';
import { ACCEPTED } from './limit-model.ts';

export interface ConcurrencySpec {
  readonly kind: 'concurrency';
  /** Requests in flight, ≥ 1. */
  readonly limit: number;
}

const NO_PLACE: Admission = Object.freeze({ accepted: false, retryAfter: 0 });

/** So many requests at a time, however long they take. */
export class Concurrency implements LimitModel {
  #limit: number;
  #inFlight = 0;

  constructor({ limit }: ConcurrencySpec) {
    this.#limit = Math.floor(atLeast(1, limit, 'limit'));
  }

  get limit(): number {
    return this.#limit;
  }

  arrive(): Admission {
    if (this.#inFlight >= this.#limit) return NO_PLACE;
    this.#inFlight += 1;
    return ACCEPTED;
  }

  /** @throws RangeError when more leave than came: a caller's mistake that would raise the limit in silence */
  leave(): void {
    if (this.#inFlight === 0) throw new RangeError('nothing is in flight');
    this.#inFlight -= 1;
  }

  quota(): Quota {
    const remaining = Math.max(0, this.#limit - this.#inFlight);
    return { remaining, limit: this.#limit, resetIn: undefined, window: undefined };
  }

  /** Those in flight beyond a smaller limit finish. */
  retarget(limit: number): void {
    this.#limit = Math.floor(atLeast(1, limit, 'limit'));
  }
}
