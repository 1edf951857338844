import type { Millis, PerSecond } from '../scalars.ts';

/** How late a token may be taken without losing time: timers fire in whole milliseconds, and event loops stall. */
export const MAX_LATENESS: Millis = 10;
/** However much requests cost, the next one waits no longer for them than this, or than for a request of one unit. */
const MAX_PAYMENT: Millis = 60_000;

/**
 * Spaces requests by the generic cell rate algorithm (GCRA, ITU-T I.371) without tolerance. It keeps the theoretical time
 * of the last request instead of the next, so that a change of the rate applies to the next request. An upstream without a
 * burst rejects any early request; so a late request shortens the next interval, and idle time does not.
 *
 * A request is paid for after it was sent: it waits for the cost of those before it, so an expensive one waits no longer than others.
 */
export class Pacer {
  #last = Number.NEGATIVE_INFINITY;
  /** Units to be paid since `#last` before the next request. Negative: units that were charged and not used. */
  #unpaid = 1;

  /** Time until a token is free at this rate; 0 if one is. */
  delay(now: Millis, rate: PerSecond): Millis {
    if (rate === Number.POSITIVE_INFINITY) return 0;
    return Math.max(0, this.#last + this.#payment(rate) - now);
  }

  /**
   * Takes a token: the next one, if `delay` is more than 0.
   * @param due when the token was due: now, or a little earlier if a timer fired late
   * @param cost in units, ≥ 0 and finite
   */
  take(due: Millis, rate: PerSecond, cost = 1): void {
    this.#last = Math.max(due, this.#last + this.#payment(rate));
    this.#unpaid = cost + Math.min(0, this.#unpaid);
  }

  /**
   * A request turns out to have cost something else than it was charged. What is given back exceeds the unpaid units by one charge
   * at most: the upstream may not keep more for later.
   */
  settle(charged: number, actual: number, now: Millis, rate: PerSecond): void {
    if (now > this.#last) {
      const paid = ((now - this.#last) * rate) / 1000;
      this.#unpaid = Math.min(this.#unpaid, Math.max(0, this.#unpaid - paid));
      this.#last = now;
    }
    this.#unpaid = Math.max(this.#unpaid + actual - charged, Math.min(this.#unpaid, -charged));
  }

  /** The theoretical time of the last request; −Infinity before the first. */
  get last(): Millis {
    return this.#last;
  }

  /** Cancels tokens that were taken for a time later than `now`. */
  rewind(now: Millis): void {
    this.#last = Math.min(this.#last, now);
  }

  #payment(rate: PerSecond): Millis {
    const payment = (1000 * this.#unpaid) / rate;
    return this.#unpaid > 1 ? Math.min(payment, Math.max(MAX_PAYMENT, 1000 / rate)) : payment;
  }
}
