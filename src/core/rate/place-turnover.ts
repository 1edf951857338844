import type { Millis, PerSecond } from '../scalars.ts';

/** The mean is over two spans, each of two to three times as many ends as requests are in flight, and of at least this many. */
const MIN_SPAN = 64;
/** Requests that end within one tick of the clock take no time by it. */
const MIN_MEAN_TIME: Millis = 1;

/**
 * How fast places in flight become free while all are taken: places ÷ the mean time that a request holds one. That mean is requests
 * in flight × time ÷ ends (Little's law), and so needs no record of each request. It is measured whether or not requests wait: if it
 * depended on the requests that are admitted, a low estimate would refuse those that could correct it.
 */
export class PlaceTurnover {
  /** Request-milliseconds in flight, and ends, in the present span and in the one before. */
  #held = 0;
  #ends = 0;
  #heldBefore = 0;
  #endsBefore = 0;
  /** At an end in the present span. */
  #mostInFlight = 0;
  /** Request-milliseconds in flight since the last end. */
  #heldSinceEnd = 0;
  #updatedAt: Millis;
  /** Rejected requests that have not ended: their ends free no place that the upstream had given. */
  #rejected = 0;

  constructor(now: Millis) {
    this.#updatedAt = now;
  }

  /** The number in flight is about to change. @param inFlight until now */
  onChange(inFlight: number, now: Millis): void {
    if (now <= this.#updatedAt) return;
    this.#heldSinceEnd += inFlight * (now - this.#updatedAt);
    this.#updatedAt = now;
  }

  onRejected(): void {
    this.#rejected += 1;
  }

  /** A request ends. @param inFlight with this one */
  onEnded(inFlight: number, now: Millis): void {
    this.onChange(inFlight, now);
    if (this.#rejected > 0) {
      this.#rejected -= 1;
      return;
    }
    this.#mostInFlight = Math.max(this.#mostInFlight, inFlight);
    // The time before the first of many ends at once is that of all of them: they stay in one span.
    const span = Math.max(MIN_SPAN, 2 * this.#mostInFlight);
    const isFirstOfMany = this.#heldSinceEnd * this.#ends >= this.#held;
    if (this.#ends >= (isFirstOfMany ? span : 1.5 * span)) this.#startSpan(inFlight);
    this.#held += this.#heldSinceEnd;
    this.#ends += 1;
    this.#heldSinceEnd = 0;
  }

  /** Places that become free each second while all are taken; undefined before as many ends as requests are in flight. */
  rate(places: number): PerSecond | undefined {
    if (this.#endsBefore === 0 && this.#ends < Math.max(1, this.#mostInFlight)) return undefined;
    const mean = (this.#held + this.#heldBefore) / (this.#ends + this.#endsBefore);
    return (1000 * places) / Math.max(MIN_MEAN_TIME, mean);
  }

  #startSpan(inFlight: number): void {
    this.#heldBefore = this.#held;
    this.#endsBefore = this.#ends;
    this.#held = 0;
    this.#ends = 0;
    this.#mostInFlight = inFlight;
  }
}
