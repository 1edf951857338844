import type { Millis, PerSecond } from '../scalars.ts';

/**
 * Counts the units of sends and rejections in buckets by *send* time: a rejection says something about the time of its send, not
 * of its response. A request has one unit unless a cost is configured. A ring of `count` buckets of `width` each; older sends are dropped.
 */
export class SendHistory {
  readonly #width: Millis;
  /** The number of buckets. */
  readonly #count: number;
  /** Sends by bucket, then rejections by bucket. One array, because limits of clients are many. */
  readonly #counts: Float32Array;
  /** The number of the newest bucket since the clock's origin. */
  #newest = Number.NEGATIVE_INFINITY;

  constructor(width: Millis, count: number) {
    this.#width = width;
    this.#count = count;
    this.#counts = new Float32Array(2 * count);
  }

  /** The longest span that it covers. */
  get span(): Millis {
    return this.#width * (this.#count - 1);
  }

  onSent(now: Millis, cost = 1): void {
    this.#add(this.#index(this.#advanceTo(now)), cost);
  }

  /** A request that was sent then has cost more, or less, than was counted. */
  onSettled(sentAt: Millis, difference: number): void {
    const number = Math.floor(sentAt / this.#width);
    if (this.#covers(number)) this.#add(this.#index(number), difference);
  }

  /** Adds sends at `rate` for the last second, rounded to whole buckets. */
  preload(now: Millis, rate: PerSecond): void {
    const last = this.#advanceTo(now);
    for (let number = this.#firstBucket(now, 1000); number <= last; number += 1) {
      const from = number * this.#width;
      this.#add(this.#index(number), (rate * (Math.min(now, from + this.#width) - from)) / 1000);
    }
  }

  onRejected(sentAt: Millis, cost = 1): void {
    const number = Math.floor(sentAt / this.#width);
    if (this.#covers(number)) this.#add(this.#count + this.#index(number), cost);
  }

  sentRate(now: Millis, over: Millis): PerSecond {
    return this.#sum('sent', now, over) / this.#seconds(now, over);
  }

  /** Sends that were not rejected (so far), per second over the span that ends now. */
  acceptedRate(now: Millis, over: Millis): PerSecond {
    return this.#sum('accepted', now, over) / this.#seconds(now, over);
  }

  /**
   * The highest accepted rate over any span that ends now, from `shortest` to `longest`. If the rate did not fall within
   * `longest`, no span gives more than a window of unknown length lets through.
   */
  bestRate(now: Millis, shortest: Millis, longest: Millis): PerSecond {
    const last = Math.min(this.#newest, Math.floor(now / this.#width));
    const oldest = Math.max(this.#firstBucket(now, longest), this.#newest - this.#count + 1);
    let sum = 0;
    let best = 0;
    for (let number = last; number >= oldest; number -= 1) {
      sum += this.#acceptedIn(number);
      const span = now - number * this.#width;
      if (span >= shortest) best = Math.max(best, (1000 * sum) / span);
    }
    return best;
  }

  /** As `acceptedRate`, over the buckets that contain a rejection; undefined if there are none. */
  acceptedWhereRejected(now: Millis, over: Millis): PerSecond | undefined {
    let accepted = 0;
    let buckets = 0;
    for (let number = this.#firstBucket(now, over); number <= Math.floor(now / this.#width); number += 1) {
      if (!this.#covers(number) || this.#rejectedIn(number) === 0) continue;
      accepted += this.#acceptedIn(number);
      buckets += 1;
    }
    return buckets === 0 ? undefined : (1000 * accepted) / (buckets * this.#width);
  }

  /** The age of the first send within the span, to a bucket; 0 if there was none. */
  activeFor(now: Millis, over: Millis): Millis {
    for (let number = this.#firstBucket(now, over); number <= this.#newest; number += 1) {
      if (this.#covers(number) && this.#sentIn(number) > 0) return now - number * this.#width;
    }
    return 0;
  }

  /** Called at every decision on a finite rate: computes only the index of the newest bucket. */
  #sum(what: 'sent' | 'accepted', now: Millis, over: Millis): number {
    const counts = this.#counts;
    const count = this.#count;
    const first = Math.max(this.#firstBucket(now, over), this.#newest - count + 1);
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

  /** The bucket in which the span begins. The whole bucket counts, and so does its time. */
  #firstBucket(now: Millis, over: Millis): number {
    return Math.floor((now - over) / this.#width);
  }

  #seconds(now: Millis, over: Millis): number {
    return (now - this.#firstBucket(now, over) * this.#width) / 1000;
  }

  /** Advances to the bucket of `now`, and clears the buckets between. */
  #advanceTo(now: Millis): number {
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

  #covers(number: number): boolean {
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
