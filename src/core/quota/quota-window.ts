import type { Millis } from '../exchange/attempt-outcome.ts';

/** Resets are told in whole seconds: one that moves by no more than this has not moved. */
const SAME_RESET: Millis = 1500;
/** A reset that is told as a second for ever has moved after this. */
const STANDING: Millis = 2000;
/** So large a part of a quota must be used up before a reset that stays where it was says that it is a window's. */
const TELLING_PART = 0.25;

/** Whether a quota is given back all at once, at a fixed time: a bucket's reset moves away with each request. */
export class WindowEvidence {
  #resetAt = Number.NEGATIVE_INFINITY;
  #since = Number.NEGATIVE_INFINITY;
  #most = 0;
  #isWindow = false;

  /** Takes in one word on the quota; returns whether it is believed to be a window's. */
  note(remaining: number, limit: number | undefined, resetAt: Millis, now: Millis): boolean {
    const moved = Math.abs(resetAt - this.#resetAt) > SAME_RESET;
    if (moved) {
      this.#isWindow = false; // a bucket's, or the next window's
      this.#resetAt = resetAt;
      this.#since = now;
      this.#most = remaining;
    } else if (limit !== undefined && this.#most - remaining >= TELLING_PART * limit) {
      this.#isWindow ||= now - this.#since >= STANDING;
    }
    return this.#isWindow;
  }
}
