import type { Millis } from '../scalars.ts';
import type { RateState } from './rate-state.ts';

/** The learned state expires after this time of requests without a reported success. */
const MAX_UNREPORTED_TIME: Millis = 600_000;

/**
 * Tracks how recent the reported successes are, on which growth depends. Every result of a request sent here is known;
 * those of requests that others send are known only as far as they are reported.
 */
export class FeedbackFreshness {
  /** u at the last reported success; −Infinity before the first. */
  #reportedGrowth = Number.NEGATIVE_INFINITY;
  /** The time since then in which the rate might have grown. */
  #unreportedFor: Millis = 0;

  onAccepted(growthElapsed: Millis): void {
    this.#reportedGrowth = growthElapsed;
    this.#unreportedFor = 0;
  }

  /** Growth restarts. */
  onDecrease(): void {
    this.#reportedGrowth = 0;
  }

  /** Adds `elapsed` and returns whether the learned state has expired. Call it once per time step. */
  isExpired(elapsed: Millis): boolean {
    this.#unreportedFor += elapsed;
    if (this.#unreportedFor <= MAX_UNREPORTED_TIME || this.#reportedGrowth === Number.NEGATIVE_INFINITY) return false;
    this.#reportedGrowth = Number.NEGATIVE_INFINITY;
    return true;
  }

  /** Whether growth beyond the ceiling has no basis: no success was reported for half of K. */
  isStale({ growthElapsed, growthPeriod }: RateState): boolean {
    return growthElapsed >= growthPeriod && growthElapsed - this.#reportedGrowth > growthPeriod / 2;
  }
}
