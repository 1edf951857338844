import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** What an account says of when it was counted. */
export interface Counted {
  /** The span in which it was, by its number. */
  span: number;
  /** What it counted for, in that span and in the one before. */
  counted: number;
  before: number;
}

/**
 * How much waits with all who call, without looking at each: the weights of those who were heard in a span of time. Who
 * is not heard any more is left out when the next one is over.
 */
export class Census {
  #span = 0;
  #endsAt = Number.NEGATIVE_INFINITY;
  #previous = 0;
  #current = 0;

  /** @param length of a span: each who waits calls at least once in it */
  note(account: Counted, weight: number, now: Millis, length: Millis): void {
    if (now >= this.#endsAt) {
      this.#previous = now < this.#endsAt + length ? this.#current : 0;
      this.#current = 0;
      this.#span += 1;
      this.#endsAt = now + length;
    }
    if (account.span !== this.#span) {
      account.before = account.span === this.#span - 1 ? account.counted : 0;
      account.counted = 0;
    }
    this.#current += weight - account.counted;
    account.span = this.#span;
    account.counted = weight;
  }

  /** Of all who wait but this one, which has been noted in this span. */
  othersThan({ counted, before }: Counted): number {
    return Math.max(0, this.#previous - before, this.#current - counted);
  }

  /** Of all who wait, and never less than who was noted last. */
  get weight(): number {
    return Math.max(this.#previous, this.#current);
  }
}
