import type { Millis, PerSecond } from '../scalars.ts';
import { ConcurrencyLimit } from './concurrency-limit.ts';
import type { RateRules } from './rules.ts';
import type { RateState } from './rate-state.ts';

/** A request that has ended with a response, or without one. */
export interface EndedSend {
  /** From the send to the response head, or to the failure. */
  readonly latency: Millis;
  readonly at: Millis;
  /** The upstream has rejected requests recently. */
  readonly isRejecting: boolean;
  /** See `FailedSend`; absent: false. */
  readonly isAbandoned?: boolean;
}

/** A limit on the requests that have no response yet, because latency has shown a queue at the upstream. */
export interface LatencyLimit {
  readonly size: number;
  /** Requests in flight that have no response yet. */
  readonly unanswered: number;
  /** It is in force to find out whether the upstream has a queue; none has been found yet. */
  readonly isTest: boolean;
}

/**
 * Counts the requests in flight, and limits them if the upstream turns out to limit their number, or to have a queue. A response that is
 * being received is in flight too, but waits in no queue.
 */
export class InFlightLimiter {
  readonly #rules: Pick<RateRules, 'makeLatencyLimiter'>;
  readonly #detector: ReturnType<RateRules['makeConcurrencyDetector']>;
  #limit: ConcurrencyLimit | undefined;
  /** Undefined while nothing is learned from latency. */
  #latency: ReturnType<RateRules['makeLatencyLimiter']> | undefined;
  #count = 0;
  /** Those that have no response yet. */
  #unanswered = 0;
  /** Requests that are admitted and not sent yet: they count too. */
  #reserved = 0;

  constructor(rules: Pick<RateRules, 'makeConcurrencyDetector' | 'makeLatencyLimiter'>) {
    this.#rules = rules;
    this.#detector = rules.makeConcurrencyDetector();
  }

  get count(): number {
    return this.#count;
  }

  get unanswered(): number {
    return this.#unanswered;
  }

  /** Infinity if the number in flight is not limited. */
  get limit(): number {
    return Math.min(this.#limit?.size ?? Number.POSITIVE_INFINITY, this.#latency?.limit ?? Number.POSITIVE_INFINITY);
  }

  get isLimited(): boolean {
    return this.#limit !== undefined;
  }

  /** The limit because of latency; undefined without one. */
  get latencyLimit(): LatencyLimit | undefined {
    const size = this.#latency?.limit ?? Number.POSITIVE_INFINITY;
    if (size === Number.POSITIVE_INFINITY) return undefined;
    return { size, unanswered: this.#unanswered, isTest: this.throughput === Number.POSITIVE_INFINITY };
  }

  /** Answers a second while the number in flight is limited because of latency; Infinity otherwise. */
  get throughput(): PerSecond {
    return this.#latency?.throughput ?? Number.POSITIVE_INFINITY;
  }

  /** How many places become free each second while all are taken; undefined before that is measured, and without a limit on places. */
  get turnoverRate(): PerSecond | undefined {
    return this.#limit?.turnoverRate;
  }

  /** The rate that spaces requests while places are limited; Infinity if nothing does, undefined without a limit on places. */
  get pace(): PerSecond | undefined {
    return this.#limit?.pace;
  }

  /** Whether the limit on places turns out to be none: see `ConcurrencyLimit.isExceeded`. */
  get isExceeded(): boolean {
    return this.#limit?.isExceeded === true;
  }

  get isFull(): boolean {
    const isQueueFull = this.#latency !== undefined && this.#unanswered + this.#reserved >= this.#latency.limit;
    return isQueueFull || (this.#limit !== undefined && this.#count + this.#reserved >= this.#limit.size);
  }

  reserve(): void {
    this.#reserved += 1;
  }

  /** Releases the reservation of an admitted request once it is sent or abandoned. */
  releaseReservation(): void {
    this.#reserved -= 1;
  }

  /** Returns how many are in flight, this one included. */
  onSent(now: Millis): number {
    this.#limit?.onSend(this.#count, now);
    this.#unanswered += 1;
    this.#count += 1;
    return this.#count;
  }

  /** Returns whether another request may have been waiting for this end. */
  onEnded(now: Millis): boolean {
    this.#limit?.onEnded(this.#count, now);
    this.#count -= 1;
    this.#unanswered = Math.min(this.#unanswered, this.#count); // responses may not be reported: see `LimitTerms`
    return this.limit < Number.POSITIVE_INFINITY && !this.isFull;
  }

  /** Corrects the counts by what another process knows. @param unanswered how many of them have no response yet */
  adjustCount(by: number, unanswered: number): void {
    this.#count = Math.max(0, this.#count + by);
    this.#unanswered = Math.min(Math.max(0, this.#unanswered + unanswered), this.#count);
  }

  /**
   * Returns whether the response shows that the upstream has a queue.
   * @param inFlightAtSend what `onSent` returned; 0 if unknown: then the latency may be an assumption of another process
   * @param accepted absent if nothing is learned from latency: what was learned from it before is discarded
   */
  onAccepted(inFlightAtSend: number, accepted?: EndedSend): boolean {
    this.#limit?.onAccepted(inFlightAtSend);
    if (accepted === undefined) this.#latency = undefined;
    if (inFlightAtSend === 0) return false;
    this.#detector.onAccepted(inFlightAtSend);
    return accepted !== undefined && this.onAnswer(accepted, this.#unanswered);
  }

  /**
   * Learns from the latency of a response. Returns whether it shows that the upstream has a queue.
   * @param unanswered requests that had no response when it arrived, its own included
   */
  onAnswer({ latency, at, isRejecting }: EndedSend, unanswered: number): boolean {
    this.#latency ??= this.#rules.makeLatencyLimiter();
    return this.#latency.onAnswer(latency, unanswered, at, isRejecting);
  }

  /** A request failed. If that took long, the upstream may have a queue. @param unanswered as for `onAnswer` */
  onTimeout(failed?: EndedSend, unanswered: number = this.#unanswered): void {
    if (failed === undefined) return;
    const { latency, at, isRejecting, isAbandoned } = failed;
    this.#latency?.onTimeout(latency, unanswered, at, isRejecting, isAbandoned);
  }

  /** Like `onAccepted`, for a number in flight that became known later. */
  onAcceptedLate(inFlightAtSend: number): void {
    this.#detector.onAccepted(inFlightAtSend);
  }

  /** A request has its response, or will get none. */
  onResponse(): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1);
  }

  advance(now: Millis): void {
    this.#latency?.advance(this.#unanswered, now);
  }

  onRejected(now: Millis): void {
    this.#limit?.onRejected(now);
  }

  /** See `ConcurrencyLimit.discountEnd`. Called for each rejection, also for one that says nothing about the limit. */
  discountEnd(): void {
    this.#limit?.discountEnd();
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

  grow(state: RateState, now: Millis): void {
    this.#limit?.grow(now, state);
  }

  /** Removes the limit; the detector keeps its evidence. */
  removeLimit(): void {
    this.#limit = undefined;
  }
}
