import type { Clock, Millis } from '../core/scalars.ts';
import { LONGEST_TIMER } from './longest-timer.ts';

/**
 * Keeps one deadline at a time, for successive waits. A later deadline does not reset the timer: if the timer fires too
 * early, it is set again for the remaining time. Setting and clearing a timer costs a microsecond. The time until a deadline may
 * exceed the longest timer.
 */
export class Deadline {
  readonly #clock: Clock;
  /** Undefined while no deadline is set. */
  #onTimeout: (() => void) | undefined;
  #span: Millis = 0;
  #dueAt: Millis = 0;
  #timer: NodeJS.Timeout | undefined;
  #firesAt: Millis = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Replaces the deadline. */
  arm(span: Millis, onTimeout: () => void): void {
    const now = this.#clock.now();
    this.#onTimeout = onTimeout;
    this.#span = span;
    this.#dueAt = now + span;
    if (this.#timer !== undefined && this.#firesAt <= this.#dueAt) return;
    clearTimeout(this.#timer);
    this.#setTimer(span, now);
  }

  /** Restarts the full span from now. */
  extend(): void {
    this.#dueAt = this.#clock.now() + this.#span;
  }

  disarm(): void {
    this.#onTimeout = undefined;
  }

  /** Removes the deadline and the timer. It may be armed again. */
  close(): void {
    this.disarm();
    clearTimeout(this.#timer);
    this.#timer = undefined; // or the next `arm` would rely on it
  }

  #setTimer(span: Millis, now: Millis): void {
    const delay = Math.min(Math.ceil(span), LONGEST_TIMER);
    this.#firesAt = now + delay;
    this.#timer = setTimeout(this.#onTimer, delay);
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    if (this.#onTimeout === undefined) return;
    const now = this.#clock.now();
    if (now < this.#dueAt) this.#setTimer(this.#dueAt - now, now);
    else this.#onTimeout();
  };
}
