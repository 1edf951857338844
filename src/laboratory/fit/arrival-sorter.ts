import type { Millis } from '../../core/scalars.ts';
import { EventQueue } from '../../simulator/engine/event-queue.ts';
import type { LoggedRequest } from './logged-request.ts';

/** How late a line may be, in ms: logs are written at the end of a request, and few take longer. */
export const REORDER_WINDOW: Millis = 60_000;
const MAX_BUFFERED = 200_000;

/** Requests whose line came after later ones had been emitted: emitted at once, later than they arrived. */
export interface LogDisorder {
  /** Lines out of order. */
  readonly late: number;
  readonly first: LateLine | undefined;
  /** Requests longer than `HORIZON`: a log sorted by end has them late. */
  readonly long: number;
}

/** A line out of order. */
export interface LateLine {
  readonly line: number;
  /** The line before it with the latest time. */
  readonly after: number;
  /** How much later that is, in ms. */
  readonly by: Millis;
}

/** Sorts requests by arrival with a bounded buffer. */
export class ArrivalSorter {
  readonly #buffer = new EventQueue<LoggedRequest>();
  readonly #emit: (logged: LoggedRequest, at: Millis) => void;
  #newest = Number.NEGATIVE_INFINITY;
  #newestLine = 0;
  #last = Number.NEGATIVE_INFINITY;
  #origin: Millis | undefined;
  #late = 0;
  #first: LateLine | undefined;
  #long = 0;

  /** @param emit called in order; `at` counts from the first and never decreases */
  constructor(emit: (logged: LoggedRequest, at: Millis) => void) {
    this.#emit = emit;
  }

  get disorder(): LogDisorder {
    return { late: this.#late, first: this.#first, long: this.#long };
  }

  add(logged: LoggedRequest): void {
    if (this.#origin !== undefined && logged.at - this.#origin < this.#last) this.#recordLate(logged);
    this.#buffer.push(logged.at, logged);
    if (logged.at > this.#newest) {
      this.#newest = logged.at;
      this.#newestLine = logged.line;
    }
    while (this.#buffer.size > MAX_BUFFERED || this.#buffer.nextAt < this.#newest - REORDER_WINDOW) this.#release();
  }

  /** Emits the buffered requests. */
  flush(): void {
    while (this.#buffer.size > 0) this.#release();
  }

  #recordLate({ at, line, took = 0 }: LoggedRequest): void {
    if (took > REORDER_WINDOW) {
      this.#long += 1;
      return;
    }
    this.#late += 1;
    this.#first ??= { line, after: this.#newestLine, by: this.#newest - at };
  }

  #release(): void {
    const logged = this.#buffer.pop();
    if (logged === undefined) return;
    this.#origin ??= logged.at;
    this.#last = Math.max(this.#last, logged.at - this.#origin);
    this.#emit(logged, this.#last);
  }
}
