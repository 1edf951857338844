import type { Millis } from '../../core/scalars.ts';
import { flushBatch } from '../undici/write-batching.ts';

/** The time for which one turn of the event loop starts requests. With the rest of a turn, it is below `MAX_LATENESS` of the pacer. */
const TURN_BUDGET: Millis = 5;
/** Started entries are removed from the front of the list in steps of this many. */
const COMPACT_AFTER = 1024;

export interface StartQueueOptions {
  readonly now: () => Millis;
  /** Whether a late timer does harm, and is likely. */
  readonly needsTimers: () => boolean;
}

/**
 * Starts requests in the order of their arrival. While timers are needed, they start after everything that arrived in this turn of
 * the event loop has been read, and only for a part of each turn. Timers fire between turns: when a client sends many requests at
 * once, the queued requests of others are sent by a timer that would otherwise fire too late to use each token.
 */
export class StartQueue {
  readonly #now: () => Millis;
  readonly #needsTimers: () => boolean;
  readonly #starts: (() => void)[] = [];
  /** The index of the next entry to run. */
  #next = 0;
  #isScheduled = false;
  #turnEnd: Millis = 0;

  constructor({ now, needsTimers }: StartQueueOptions) {
    this.#now = now;
    this.#needsTimers = needsTimers;
  }

  get size(): number {
    return this.#starts.length - this.#next;
  }

  /** Whether a request that arrives now has to wait for others, or for the end of this turn. */
  get mustWait(): boolean {
    return this.size > 0 || this.#needsTimers();
  }

  /** Runs `start` in this turn or a later one, after those already waiting. */
  add(start: () => void): void {
    this.#starts.push(start);
    if (!this.#isScheduled) this.#schedule();
  }

  #schedule(): void {
    this.#isScheduled = true;
    setImmediate(this.#startTurn);
  }

  readonly #startTurn = (): void => {
    this.#turnEnd = this.#now() + TURN_BUDGET;
    this.#startNext();
  };

  readonly #startNext = (): void => {
    const start = this.#starts[this.#next];
    this.#next += 1;
    if (this.size === 0 || this.#next >= COMPACT_AFTER) {
      this.#starts.splice(0, this.#next);
      this.#next = 0;
    }
    try {
      start?.();
    } finally {
      queueMicrotask(this.#continue);
    }
  };

  /** Callbacks that the request has scheduled run before the next request, as if each had arrived alone. */
  readonly #continue = (): void => process.nextTick(this.#continueTurn);

  readonly #continueTurn = (): void => {
    if (this.size > 0 && this.#now() < this.#turnEnd) return this.#startNext();
    this.#isScheduled = false;
    if (this.size > 0) this.#schedule();
    flushBatch();
  };
}
