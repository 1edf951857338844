import type { Millis } from '../scalars.ts';

/** Resets are in whole seconds: one that moves by at most this has not moved. */
const SAME_RESET: Millis = 1500;
/** A reset that is always reported as one second ahead has moved after this time. */
const MIN_UNCHANGED_TIME: Millis = 2000;
/** The share of a quota that must be used before an unmoved reset shows a fixed window. */
const MIN_USED_SHARE = 0.25;

/** Detects a quota that refills all at once, at a fixed time. The reset of a token bucket moves with each request instead. */
export class FixedWindowDetector {
  #resetAt = Number.NEGATIVE_INFINITY;
  #since = Number.NEGATIVE_INFINITY;
  #highestRemaining = 0;
  #isWindow = false;

  /** Records a report; returns whether the quota is assumed to be a fixed window. */
  onQuota(remaining: number, limit: number | undefined, resetAt: Millis, now: Millis): boolean {
    const moved = Math.abs(resetAt - this.#resetAt) > SAME_RESET;
    if (moved) {
      this.#isWindow = false; // a bucket, or the next window
      this.#resetAt = resetAt;
      this.#since = now;
      this.#highestRemaining = remaining;
    } else if (limit !== undefined && this.#highestRemaining - remaining >= MIN_USED_SHARE * limit) {
      this.#isWindow ||= now - this.#since >= MIN_UNCHANGED_TIME;
    }
    return this.#isWindow;
  }
}
