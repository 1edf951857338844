import type { Millis, PerSecond } from '../scalars.ts';
import type { SettledCost } from './failed-send.ts';

/** How late a token may be taken without losing time: timers fire in whole milliseconds, and event loops stall. */
export const MAX_LATENESS: Millis = 10;
/** However much requests cost, the next one waits no longer for them than this, or than for a request of one unit. */
export const MAX_PAYMENT: Millis = 60_000;
/** What is carried beyond that, for the requests that follow, in such periods. */
const MAX_CARRIED_PAYMENTS = 10;

/** The most that one request is charged at this rate, in units: what `MAX_PAYMENT` pays. */
export function largestCharge(rate: PerSecond): number {
  return Math.max(1, (MAX_PAYMENT * rate) / 1000);
}

function unitsPaidIn(time: Millis, rate: PerSecond): number {
  return time > 0 ? (time * rate) / 1000 : 0;
}

/**
 * Spaces requests by the generic cell rate algorithm (GCRA, ITU-T I.371) without tolerance. It keeps the theoretical time
 * of the last request instead of the next, so that a change of the rate applies to the next request. An upstream without a
 * burst rejects any early request; so a late request shortens the next interval, and idle time does not.
 *
 * A request is paid for after it was sent: it waits for the cost of those before it, so an expensive one waits no longer than others.
 */
export class Pacer {
  #last = Number.NEGATIVE_INFINITY;
  /** When the last token was taken: `#last`, unless a charge was settled since. */
  #takenAt = Number.NEGATIVE_INFINITY;
  /** Units to be paid since `#last` before the next request. Negative: units that were charged and not used. */
  #unpaid = 1;
  /** Units beyond these, which later requests wait for; ≥ 0. */
  #carried = 0;

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
    if (rate === Number.POSITIVE_INFINITY) this.#payAll();
    const paidAt = this.#last + this.#payment(rate);
    if (this.#carried > 0) this.#pay(due - paidAt, rate);
    // A credit pays for one request, and ends as it would be used up: an upstream without a burst keeps nothing for later.
    const left = this.#unpaid < 0 ? Math.min(0, this.#unpaid + unitsPaidIn(due - this.#last, rate)) : 0;
    this.#last = Math.max(due, paidAt);
    this.#takenAt = this.#last;
    if (cost <= 1 && this.#carried === 0) this.#unpaid = Math.max(0, cost + left);
    else {
      const largest = largestCharge(rate);
      this.#spread(Math.max(0, Math.min(cost, largest) + this.#carried + left), largest, rate);
    }
    if (rate === Number.POSITIVE_INFINITY) this.#payAll();
  }

  /**
   * A request turns out to have cost something else than it was charged. No request is charged more than `largestCharge`. What is given
   * back exceeds the unpaid units by one charge at most, if the upstream has counted less, and else not at all: that would be a burst.
   * At an unlimited rate, everything is paid.
   */
  settle({ charged, actual, result }: SettledCost, now: Millis, rate: PerSecond): void {
    if (rate === Number.POSITIVE_INFINITY) return this.#payAll();
    if (now > this.#last) {
      const paid = unitsPaidIn(now - this.#last, rate);
      const due = Math.min(this.#unpaid, Math.max(1, this.#payableBy(this.#last, rate)));
      this.#pay(now - this.#last - (1000 * due) / rate, rate);
      this.#unpaid = due < 0 ? Math.min(0, due + paid) : Math.max(0, due - paid);
      this.#last = now;
    }
    const total = this.#unpaid + this.#carried;
    const largest = largestCharge(rate);
    const counted = Math.min(charged, largest);
    const difference = Math.min(actual, largest) - counted;
    const payable = Math.max(this.#unpaid, this.#payableBy(Math.max(now, this.#last), rate));
    this.#spread(Math.max(total + difference, Math.min(total, result === 'read' ? -counted : 0)), payable, rate);
  }

  /** Splits units: what exceeds `payable` is carried. */
  #spread(units: number, payable: number, rate: PerSecond): void {
    this.#unpaid = Math.min(units, payable);
    this.#carried = Math.min(units - this.#unpaid, MAX_CARRIED_PAYMENTS * largestCharge(rate));
  }

  /** The units that can be paid from this time on until `MAX_PAYMENT` after the last token; ≥ 0. */
  #payableBy(from: Millis, rate: PerSecond): number {
    return unitsPaidIn(this.#takenAt + MAX_PAYMENT - from, rate);
  }

  /** What is paid for at an unlimited rate: all, except for one unit of the last request, which spaces the next one once there is a rate. */
  #payAll(): void {
    this.#carried = 0;
    this.#unpaid = Math.min(1, this.#unpaid);
  }

  /** Pays what is carried by idle time. */
  #pay(idle: Millis, rate: PerSecond): void {
    this.#carried = Math.max(0, this.#carried - unitsPaidIn(idle, rate));
  }

  /** The units that later requests than the next one wait for; ≥ 0. */
  get carried(): number {
    return this.#carried;
  }

  /** The theoretical time of the last request; −Infinity before the first. */
  get last(): Millis {
    return this.#last;
  }

  /** Cancels tokens that were taken for a time later than `now`. */
  rewind(now: Millis): void {
    this.#last = Math.min(this.#last, now);
    this.#takenAt = Math.min(this.#takenAt, now);
  }

  #payment(rate: PerSecond): Millis {
    const payment = (1000 * this.#unpaid) / rate;
    return this.#unpaid > 1 ? Math.min(payment, Math.max(MAX_PAYMENT, 1000 / rate)) : payment;
  }
}
