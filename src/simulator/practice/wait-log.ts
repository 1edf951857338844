import type { Millis } from '../../core/scalars.ts';

/** The time that the service of a practice upstream added to the work of one request. */
export interface LoggedWait {
  /** When the work ended, in ms since the start or the last reset. */
  readonly at: Millis;
  /** Waiting for a worker, and any slowing down. */
  readonly wait: Millis;
}

/** Enough for ten minutes of 160 requests a second. */
const MAX_WAITS = 100_000;

/** The waits of the last requests that a service has worked on, abandoned ones included. */
export class WaitLog {
  readonly #waits: LoggedWait[] = [];
  /** Of the oldest one, once the log is full. */
  #oldest = 0;
  readonly #size: number;

  constructor(size = MAX_WAITS) {
    this.#size = size;
  }

  add(at: Millis, wait: Millis): void {
    if (this.#waits.length < this.#size) {
      this.#waits.push({ at, wait });
      return;
    }
    this.#waits[this.#oldest] = { at, wait };
    this.#oldest = (this.#oldest + 1) % this.#size;
  }

  /** Oldest first. */
  list(): LoggedWait[] {
    return [...this.#waits.slice(this.#oldest), ...this.#waits.slice(0, this.#oldest)];
  }
}
