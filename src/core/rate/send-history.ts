import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';

/**
 * What was sent and what of it was rejected, in buckets by *send* time: a rejection speaks of the moment its request
 * left, not of the moment the answer came. A ring of `count` buckets of `width` each; older sends are forgotten.
 */
export class SendAccount {
  readonly #width: Millis;
  /** Buckets. */
  readonly #count: number;
  /** What was sent, by bucket, and then what was rejected: in one array, for limits of clients are many. */
  readonly #counts: Float32Array;
  /** The number of the newest bucket, counted from the clock's origin. */
  #newest = Number.NEGATIVE_INFINITY;

  constructor(width: Millis, count: number) {
    this.#width = width;
    this.#count = count;
    this.#counts = new Float32Array(2 * count);
  }

  /** The longest span it can speak of. */
  get span(): Millis {
    return this.#width * (this.#count - 1);
  }

  sent(now: Millis): void {
    this.#add(this.#index(this.#turn(now)), 1);
  }

  /** As if `rate` had been sent for the last second, and for what of the time before shares a bucket with it. */
  preload(now: Millis, rate: PerSecond): void {
    const last = this.#turn(now);
    for (let number = this.#first(now, 1000); number <= last; number += 1) {
      const from = number * this.#width;
      this.#add(this.#index(number), (rate * (Math.min(now, from + this.#width) - from)) / 1000);
    }
  }

  rejected(sentAt: Millis): void {
    const number = Math.floor(sentAt / this.#width);
    if (this.#holds(number)) this.#add(this.#count + this.#index(number), 1);
  }

  sentRate(now: Millis, over: Millis): PerSecond {
    return this.#sum('sent', now, over) / this.#seconds(now, over);
  }

  /** Sent and not rejected (so far), over the span that ends now. */
  acceptedRate(now: Millis, over: Millis): PerSecond {
    return this.#sum('accepted', now, over) / this.#seconds(now, over);
  }

  /**
   * The highest accepted rate over any span that ends now and is at least `shortest` and at most `longest` long. Where
   * the rate did not fall within `longest`, no span tells more than what a window of unknown length lets through.
   */
  bestRate(now: Millis, shortest: Millis, longest: Millis): PerSecond {
    const last = Math.min(this.#newest, Math.floor(now / this.#width));
    const oldest = Math.max(this.#first(now, longest), this.#newest - this.#count + 1);
    let sum = 0;
    let best = 0;
    for (let number = last; number >= oldest; number -= 1) {
      sum += this.#acceptedIn(number);
      const span = now - number * this.#width;
      if (span >= shortest) best = Math.max(best, (1000 * sum) / span);
    }
    return best;
  }

  /** As `acceptedRate`, over those buckets in which something was rejected; undefined when there are none. */
  acceptedWhereRejected(now: Millis, over: Millis): PerSecond | undefined {
    let accepted = 0;
    let buckets = 0;
    for (let number = this.#first(now, over); number <= Math.floor(now / this.#width); number += 1) {
      if (!this.#holds(number) || this.#rejectedIn(number) === 0) continue;
      accepted += this.#acceptedIn(number);
      buckets += 1;
    }
    return buckets === 0 ? undefined : (1000 * accepted) / (buckets * this.#width);
  }

  /** How long ago the first of what was sent in the span was sent, to a bucket; 0 when nothing was. */
  busyFor(now: Millis, over: Millis): Millis {
    for (let number = this.#first(now, over); number <= this.#newest; number += 1) {
      if (this.#holds(number) && this.#sentIn(number) > 0) return now - number * this.#width;
    }
    return 0;
  }

  /** A felt limit asks for this at every decision: no bucket's place is computed but that of the newest. */
  #sum(what: 'sent' | 'accepted', now: Millis, over: Millis): number {
    const counts = this.#counts;
    const count = this.#count;
    const first = Math.max(this.#first(now, over), this.#newest - count + 1);
    const last = Math.min(this.#newest, Math.floor(now / this.#width));
    let sum = 0;
    let index = this.#index(last);
    for (let number = last; number >= first; number -= 1) {
      const sent = counts[index] ?? 0;
      sum += what === 'sent' ? sent : sent - (counts[count + index] ?? 0);
      index = index === 0 ? count - 1 : index - 1;
    }
    return sum;
  }

  /** The bucket in which the span begins. It counts whole, and so does its time: a rate is never of half a bucket. */
  #first(now: Millis, over: Millis): number {
    return Math.floor((now - over) / this.#width);
  }

  #seconds(now: Millis, over: Millis): number {
    return (now - this.#first(now, over) * this.#width) / 1000;
  }

  /** Moves on to the bucket of `now`, and empties those that were skipped. */
  #turn(now: Millis): number {
    const number = Math.floor(now / this.#width);
    if (number > this.#newest) {
      const first = Math.max(this.#newest + 1, number - this.#count + 1);
      for (let skipped = first; skipped <= number; skipped += 1) {
        this.#counts[this.#index(skipped)] = 0;
        this.#counts[this.#count + this.#index(skipped)] = 0;
      }
      this.#newest = number;
    }
    return number;
  }

  #holds(number: number): boolean {
    return number <= this.#newest && number > this.#newest - this.#count;
  }

  #index(number: number): number {
    return ((number % this.#count) + this.#count) % this.#count;
  }

  #add(index: number, amount: number): void {
    this.#counts[index] = (this.#counts[index] ?? 0) + amount;
  }

  #sentIn(number: number): number {
    return this.#counts[this.#index(number)] ?? 0;
  }

  #rejectedIn(number: number): number {
    return this.#counts[this.#count + this.#index(number)] ?? 0;
  }

  #acceptedIn(number: number): number {
    return this.#sentIn(number) - this.#rejectedIn(number);
  }
}
