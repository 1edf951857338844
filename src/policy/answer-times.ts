import type { Millis } from './types.ts';

/** What a new answer counts for: as TCP smooths its round-trip time (RFC 6298 §2). */
const GAIN = 1 / 8;

/** How long an upstream takes to answer a write, smoothed: what has less time left is not worth an attempt. */
export class AnswerTime {
  #smoothed: Millis | undefined;

  /** @param took from the send to the head of an answer to the write */
  add(took: Millis): void {
    this.#smoothed = this.#smoothed === undefined ? took : this.#smoothed + GAIN * (took - this.#smoothed);
  }

  /** 0 where nothing is known. One function for all: it holds on to no request. */
  readonly get = (): Millis => this.#smoothed ?? 0;
}

/** By upstream. */
export class AnswerTimes {
  readonly #times = new Map<string, AnswerTime>();

  of(upstream: string): AnswerTime {
    const known = this.#times.get(upstream);
    if (known !== undefined) return known;
    const made = new AnswerTime();
    this.#times.set(upstream, made);
    return made;
  }
}
