import type { Millis } from '../../core/scalars.ts';
import type { DeliveryRows } from './delivery-rows.ts';
import type { StoredDelivery } from './stored-delivery.ts';

export interface DeliveryExpiryOptions {
  readonly rows: DeliveryRows;
  /** A delivery that has waited for longer is given up. */
  readonly maxAge: () => Millis;
  /** Others cannot change the delivery with this number: it is being sent, for example. */
  readonly isClaimed: (number: number) => boolean;
  /** How many are claimed. */
  readonly claimed: () => number;
}

/** Finds the deliveries that have waited too long since they were accepted, or restarted by an operator. Times are as they are stored. */
export class DeliveryExpiry {
  readonly #options: DeliveryExpiryOptions;
  /** None that is not claimed waits since an earlier time. */
  #oldest: Millis;
  /** Within the present transaction. */
  #appliedOldest: Millis;

  constructor(options: DeliveryExpiryOptions) {
    this.#options = options;
    this.#oldest = this.#appliedOldest = this.#readOldest();
  }

  /** No delivery expires before. */
  get next(): Millis {
    return this.#oldest + this.#options.maxAge();
  }

  /** A transaction begins. */
  begin(): void {
    this.#appliedOldest = this.#oldest;
  }

  /** It is stored. */
  commit(): void {
    this.#oldest = this.#appliedOldest;
  }

  /** A delivery waits that is not claimed any more once the transaction is stored. */
  onWaiting(since: Millis): void {
    this.#appliedOldest = Math.min(this.#appliedOldest, since);
  }

  /** Calls back for up to `limit` deliveries that have expired, which it has to end. */
  endExpired(now: Millis, limit: number, end: (row: StoredDelivery) => void): void {
    const { rows, maxAge, isClaimed, claimed } = this.#options;
    const numbers = rows
      .openSince(now - maxAge(), limit + claimed())
      .map(({ number }) => number)
      .filter((number) => !isClaimed(number));
    for (const number of numbers.slice(0, limit)) {
      const row = rows.get(number);
      if (row !== undefined) end(row);
    }
    this.#appliedOldest = this.#readOldest();
  }

  #readOldest(): Millis {
    const { rows, isClaimed, claimed } = this.#options;
    const first = rows.openSince(Infinity, claimed() + 1).find(({ number }) => !isClaimed(number));
    return first?.since ?? Infinity;
  }
}
