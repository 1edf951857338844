import type { Clock, Millis } from '../core/scalars.ts';
import { LONGEST_TIMER } from './longest-timer.ts';

/** Something that has work to do at certain times. */
export interface Wakeable {
  /** When it has to be woken; undefined if there is nothing to do. */
  nextWake(): Millis | undefined;
  /** May be called early. */
  wake(now: Millis): void;
}

/** Wakes its target when it has work due, by one timer; early if the work is due later than the longest timer. */
export class WakeTimer {
  readonly #target: Wakeable;
  readonly #clock: Clock;
  #timer: NodeJS.Timeout | undefined;
  #at: Millis = Number.POSITIVE_INFINITY;

  constructor(target: Wakeable, clock: Clock) {
    this.#target = target;
    this.#clock = clock;
  }

  /** Whether there may be work due at some time. */
  get isSet(): boolean {
    return this.#at !== Number.POSITIVE_INFINITY;
  }

  /** To be called whenever the target may have to be woken earlier than before. */
  rearm(): void {
    const at = this.#target.nextWake() ?? Number.POSITIVE_INFINITY;
    if (at >= this.#at) return;
    clearTimeout(this.#timer);
    this.#at = at;
    // Waiting requests keep the process alive by their connections; this timer alone must not.
    const delay = Math.min(Math.max(0, Math.ceil(at - this.#clock.now())), LONGEST_TIMER);
    this.#timer = setTimeout(this.#wake, delay).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  readonly #wake = (): void => {
    this.#at = Number.POSITIVE_INFINITY;
    this.#target.wake(this.#clock.now());
    this.rearm();
  };
}
