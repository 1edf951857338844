import type { Millis } from '../../core/scalars.ts';

export interface WorkerWakesParts {
  /** Sends the worker a message: it is to look for deliveries that are due. */
  readonly wake: (worker: number) => void;
  /** Calls `run` after this time. Returns what cancels it. */
  readonly after: (delay: Millis, run: () => void) => () => void;
}

/** A worker that has not looked so long after it was woken is busy, or hangs: another one is woken. */
const LOOK_WITHIN: Millis = 100;

/**
 * Decides which worker looks for deliveries that are due. One is woken at a time, in turn. Changes until it looks need no other wake, so
 * that N workers do not all look for each addition.
 */
export class WorkerWakes {
  readonly #parts: WorkerWakesParts;
  /** Those that respond, the one first that has taken nothing for the longest time. */
  readonly #ready = new Set<number>();
  /** Those that were woken in vain, until their next message. */
  readonly #silent = new Set<number>();
  #woken: number | undefined;
  #cancelTimer: (() => void) | undefined;
  /** Nobody has looked since the last change. */
  #isWanted = false;

  constructor(parts: WorkerWakesParts) {
    this.#parts = parts;
  }

  /** The number of workers that take deliveries, and respond. */
  get ready(): number {
    return this.#ready.size;
  }

  /** Deliveries may be due that were not before. */
  want(): void {
    this.#isWanted = true;
    this.#wakeNext();
  }

  /** A worker looks at all routes for which it can send more. */
  onLook(worker: number): void {
    this.#silent.delete(worker);
    this.#ready.add(worker);
    this.#isWanted = false;
    this.#clear();
  }

  /** A worker has taken deliveries: it is the turn of the others. */
  onTaken(worker: number): void {
    if (!this.#ready.delete(worker)) return;
    this.#ready.add(worker);
  }

  /** Another message of the worker: its event loop runs. */
  onMessage(worker: number): void {
    if (!this.#silent.delete(worker)) return;
    this.#ready.add(worker);
    this.#wakeNext();
  }

  /** The worker takes no more deliveries. */
  remove(worker: number): void {
    this.#ready.delete(worker);
    this.#silent.delete(worker);
    if (this.#woken !== worker) return;
    this.#clear();
    this.#wakeNext();
  }

  stop(): void {
    this.#ready.clear();
    this.#silent.clear();
    this.#clear();
  }

  #wakeNext(): void {
    if (!this.#isWanted || this.#woken !== undefined) return;
    const [worker] = this.#ready;
    if (worker === undefined) return; // the next one that looks, or responds again, finds what is due
    this.#woken = worker;
    this.#cancelTimer = this.#parts.after(LOOK_WITHIN, () => {
      this.#ready.delete(worker);
      this.#silent.add(worker);
      this.#clear();
      this.#wakeNext();
    });
    this.#parts.wake(worker);
  }

  #clear(): void {
    this.#woken = undefined;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }
}
