import type { Clock, Millis } from '../core/exchange/attempt-outcome.ts';

/** What says itself when it has something to do. */
export interface Sleeper {
  /** Undefined when there is nothing to wait for. */
  nextWake(): Millis | undefined;
  /** Earlier than asked for does no harm. */
  wake(now: Millis): void;
}

/** Wakes a sleeper in time: one timer, however much it waits for. */
export class WakeTimer {
  readonly #sleeper: Sleeper;
  readonly #clock: Clock;
  #timer: NodeJS.Timeout | undefined;
  #at: Millis = Number.POSITIVE_INFINITY;

  constructor(sleeper: Sleeper, clock: Clock) {
    this.#sleeper = sleeper;
    this.#clock = clock;
  }

  /** To be called whenever it may want to be woken earlier than before. */
  rearm(): void {
    const at = this.#sleeper.nextWake() ?? Number.POSITIVE_INFINITY;
    if (at >= this.#at) return;
    clearTimeout(this.#timer);
    this.#at = at;
    // What is waited for has a connection, which keeps this process: a timer that nobody waits for any more must not.
    this.#timer = setTimeout(this.#wake, Math.max(0, Math.ceil(at - this.#clock.now()))).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  readonly #wake = (): void => {
    this.#at = Number.POSITIVE_INFINITY;
    this.#sleeper.wake(this.#clock.now());
    this.rearm();
  };
}
