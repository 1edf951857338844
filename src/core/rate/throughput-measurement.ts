import type { Millis, PerSecond } from '../scalars.ts';

/** Counts answers while the number of requests in flight is about the same. */
export class ThroughputMeasurement {
  readonly #startAt: Millis;
  #answers = 0;
  #inFlight = 0;
  #firstAt: Millis = 0;
  #lastAt: Millis = 0;

  /** @param startAt answers before this are left out: the number in flight has just changed */
  constructor(startAt: Millis) {
    this.#startAt = startAt;
  }

  /** Intervals between answers so far. */
  get count(): number {
    return Math.max(0, this.#answers - 1);
  }

  /** From the first answer to the last one. */
  get duration(): Millis {
    return this.#lastAt - this.#firstAt;
  }

  /** Answers a second; 0 before the second one. */
  get rate(): PerSecond {
    return this.duration > 0 ? (1000 * this.count) / this.duration : 0;
  }

  /** The mean number of requests in flight. */
  get inFlight(): number {
    return this.#inFlight / Math.max(1, this.#answers);
  }

  /** @param inFlight before this answer, its own request included */
  onAnswer(inFlight: number, now: Millis): void {
    if (now < this.#startAt) return;
    if (this.#answers === 0) this.#firstAt = now;
    this.#answers += 1;
    this.#inFlight += inFlight;
    this.#lastAt = now;
  }
}
