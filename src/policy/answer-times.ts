import type { Millis } from './types.ts';

/** What a new answer counts for: as TCP smooths its round-trip time (RFC 6298 §2). */
const GAIN = 1 / 8;

/** How long upstreams take to answer a write, smoothed: what has less time left is not worth an attempt. */
export class AnswerTimes {
  readonly #times = new Map<string, Millis>();

  /** @param took from the send to the head of an answer to the write */
  add(upstream: string, took: Millis): void {
    const before = this.#times.get(upstream);
    this.#times.set(upstream, before === undefined ? took : before + GAIN * (took - before));
  }

  /** 0 where nothing is known. */
  of(upstream: string): Millis {
    return this.#times.get(upstream) ?? 0;
  }
}
