import type { Millis, PerSecond } from '../scalars.ts';

/** Counts answers, and requests that end without one, while the number of requests in flight is about the same. */
export class ThroughputMeasurement {
  readonly #startAt: Millis;
  #answers = 0;
  #timeouts = 0;
  #inFlight = 0;
  #firstAt: Millis = 0;
  #lastAt: Millis = 0;

  /** @param startAt what ends before this is left out: the number in flight has just changed */
  constructor(startAt: Millis) {
    this.#startAt = startAt;
  }

  /** Intervals between answers so far. */
  get count(): number {
    return Math.max(0, this.#answers - 1);
  }

  /** As `count`, with the requests that ended without an answer. */
  get ends(): number {
    return Math.max(0, this.#answers + this.#timeouts - 1);
  }

  /** From the first end to the last one. */
  get duration(): Millis {
    return this.#lastAt - this.#firstAt;
  }

  /** Answers a second; 0 before the second one. */
  get rate(): PerSecond {
    return this.duration > 0 ? (1000 * this.count) / this.duration : 0;
  }

  /** Requests that end each second, answered or not; 0 before the second one. */
  get endRate(): PerSecond {
    return this.duration > 0 ? (1000 * this.ends) / this.duration : 0;
  }

  /** The mean number of requests in flight. */
  get inFlight(): number {
    return this.#inFlight / Math.max(1, this.#answers + this.#timeouts);
  }

  /** @param inFlight before this answer, its own request included */
  onAnswer(inFlight: number, now: Millis): void {
    if (this.#onEnd(inFlight, now)) this.#answers += 1;
  }

  /** A request ends without an answer. @param inFlight as for `onAnswer` */
  onTimeout(inFlight: number, now: Millis): void {
    if (this.#onEnd(inFlight, now)) this.#timeouts += 1;
  }

  #onEnd(inFlight: number, now: Millis): boolean {
    if (now < this.#startAt) return false;
    if (this.#answers + this.#timeouts === 0) this.#firstAt = now;
    this.#inFlight += inFlight;
    this.#lastAt = now;
    return true;
  }
}
