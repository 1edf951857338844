import type { Clock, Millis } from '../../core/exchange/attempt-outcome.ts';

/**
 * What happens when something that is waited for does not come in time; one thing after another. It has one timer, which is not
 * set again while it fires soon enough, and looks then what there is to wait for: to set and clear one costs a microsecond.
 */
export class Deadline {
  readonly #clock: Clock;
  /** Undefined: nothing is waited for. */
  #onLate: (() => void) | undefined;
  #span: Millis = 0;
  #dueAt: Millis = 0;
  #timer: NodeJS.Timeout | undefined;
  #firesAt: Millis = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** From now on something else is waited for. */
  arm(span: Millis, onLate: () => void): void {
    const now = this.#clock.now();
    this.#onLate = onLate;
    this.#span = span;
    this.#dueAt = now + span;
    if (this.#timer !== undefined && this.#firesAt <= this.#dueAt) return;
    clearTimeout(this.#timer);
    this.#setTimer(span, now);
  }

  /** Some of it has come: its time counts anew. */
  extend(): void {
    this.#dueAt = this.#clock.now() + this.#span;
  }

  disarm(): void {
    this.#onLate = undefined;
  }

  /** Nothing is waited for any more. */
  close(): void {
    this.disarm();
    clearTimeout(this.#timer);
  }

  #setTimer(span: Millis, now: Millis): void {
    this.#firesAt = now + span;
    this.#timer = setTimeout(this.#onTimer, Math.ceil(span));
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    if (this.#onLate === undefined) return;
    const now = this.#clock.now();
    if (now < this.#dueAt) this.#setTimer(this.#dueAt - now, now);
    else this.#onLate();
  };
}
