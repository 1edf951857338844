import type { Millis, PerSecond } from '../scalars.ts';
import { ConcurrencyLimit } from './concurrency-limit.ts';
import type { RateRules } from './rules.ts';
import type { RateSettings, RateState } from './rate-state.ts';
import { clamp } from './rate-state.ts';

/** Counts the requests in flight, and limits them if the upstream turns out to limit their number. */
export class InFlightLimiter {
  readonly #detector: ReturnType<RateRules['makeConcurrencyDetector']>;
  #limit: ConcurrencyLimit | undefined;
  #count = 0;
  /** Requests that are admitted and not sent yet: they count too. */
  #reserved = 0;

  constructor(detector: ReturnType<RateRules['makeConcurrencyDetector']>) {
    this.#detector = detector;
  }

  get count(): number {
    return this.#count;
  }

  /** Infinity if the number in flight is not limited. */
  get limit(): number {
    return this.#limit?.size ?? Number.POSITIVE_INFINITY;
  }

  get isLimited(): boolean {
    return this.#limit !== undefined;
  }

  get isFull(): boolean {
    return this.#count + this.#reserved >= this.limit;
  }

  reserve(): void {
    this.#reserved += 1;
  }

  /** An admitted request has been sent, or will not be. */
  releaseReservation(): void {
    this.#reserved -= 1;
  }

  /** Returns how many are in flight, this one included. */
  onSent(): number {
    this.#count += 1;
    return this.#count;
  }

  /** Returns whether another request may have been waiting for that. */
  onEnded(): boolean {
    this.#count -= 1;
    return this.isLimited && !this.isFull;
  }

  /** Corrects the count by what another process knows. */
  adjustCount(by: number): void {
    this.#count = Math.max(0, this.#count + by);
  }

  /** @param inFlightAtSend what `onSent` returned; 0 if unknown */
  onAccepted(inFlightAtSend: number): void {
    if (inFlightAtSend > 0) this.#detector.onAccepted(inFlightAtSend);
    this.#limit?.onAccepted();
  }

  /** As `onAccepted`, for a number in flight that became known later. */
  onAcceptedLate(inFlightAtSend: number): void {
    this.#detector.onAccepted(inFlightAtSend);
  }

  onRejected(now: Millis): void {
    this.#limit?.onRejected(now);
  }

  /** The first rejection of an epoch. Returns whether the number in flight is limited; it is enforced from then on. */
  detectLimit(inFlightAtSend: number, now: Millis): boolean {
    if (this.#limit === undefined) {
      const detected = inFlightAtSend === 0 ? undefined : this.#detector.onRejected(inFlightAtSend);
      if (detected === undefined) return false;
      this.#limit = new ConcurrencyLimit(detected - 1, now);
    } else if (this.#limit.isRefuted) {
      this.discardLimit();
      return false;
    }
    return true;
  }

  /** Continues with a limit that was known before. */
  resume(limit: number, now: Millis): void {
    this.#limit = new ConcurrencyLimit(limit, now);
  }

  /** Drops the limit because something else must be limited, and restarts its detection. */
  discardLimit(): void {
    this.removeLimit();
    this.#detector.reset();
  }

  /** Grows the limit. The rate follows from it. @param accepted the accepted rate */
  grow(state: RateState, { minRate, maxRate }: RateSettings, accepted: PerSecond, now: Millis): void {
    state.rate = clamp(accepted, minRate, maxRate);
    this.#limit?.grow(now, state);
  }

  /** Removes the limit; the detector keeps its evidence. */
  removeLimit(): void {
    this.#limit = undefined;
  }
}
