import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { EventQueue } from '../../simulator/engine/event-queue.ts';
import type { Logged } from './logged-request.ts';

/** How late a line may be: logs are written at the end of a request, and few requests take longer. */
export const HORIZON: Millis = 60_000;
const MOST = 200_000;

/** Requests whose lines came when later ones had been handed on: they are handed on at once, later than they were. */
export interface Disorder {
  /** Of lines that are not where their time belongs. */
  readonly late: number;
  readonly first: Late | undefined;
  /** Of requests that took longer than `HORIZON`: a log that is written at their end has them late, sorted as it may be. */
  readonly long: number;
}

/** A line that comes too late. */
export interface Late {
  readonly line: number;
  /** The newest before it, by its time. */
  readonly after: number;
  /** How much newer that is. */
  readonly by: Millis;
}

/** Puts requests in the order of their arrival, holding no more of them than it has to. */
export class InOrder {
  readonly #held = new EventQueue<Logged>();
  readonly #emit: (logged: Logged, at: Millis) => void;
  #newest = Number.NEGATIVE_INFINITY;
  #newestLine = 0;
  #last = Number.NEGATIVE_INFINITY;
  #origin: Millis | undefined;
  #late = 0;
  #first: Late | undefined;
  #long = 0;

  /** @param emit called in order; `at` counts from the first, and never goes back */
  constructor(emit: (logged: Logged, at: Millis) => void) {
    this.#emit = emit;
  }

  get disorder(): Disorder {
    return { late: this.#late, first: this.#first, long: this.#long };
  }

  add(logged: Logged): void {
    if (this.#origin !== undefined && logged.at - this.#origin < this.#last) this.#note(logged);
    this.#held.push(logged.at, logged);
    if (logged.at > this.#newest) {
      this.#newest = logged.at;
      this.#newestLine = logged.line;
    }
    while (this.#held.size > MOST || this.#held.nextAt < this.#newest - HORIZON) this.#release();
  }

  /** What is still held. */
  flush(): void {
    while (this.#held.size > 0) this.#release();
  }

  #note({ at, line, took = 0 }: Logged): void {
    if (took > HORIZON) {
      this.#long += 1;
      return;
    }
    this.#late += 1;
    this.#first ??= { line, after: this.#newestLine, by: this.#newest - at };
  }

  #release(): void {
    const logged = this.#held.pop();
    if (logged === undefined) return;
    this.#origin ??= logged.at;
    this.#last = Math.max(this.#last, logged.at - this.#origin);
    this.#emit(logged, this.#last);
  }
}
