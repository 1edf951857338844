import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { Quota } from '../../core/hints/hints.ts';
import { requirePositive, requireAtLeast } from './check-range.ts';
import type { LimitDecision, LimitModel } from './limit-model.ts';
import { ACCEPTED, TIME_TOLERANCE } from './limit-model.ts';

export interface GcraSpec {
  readonly kind: 'gcra';
  readonly rate: PerSecond;
  /** Requests accepted back to back after an idle time, ≥ 1. */
  readonly burst: number;
}

/**
 * The generic cell rate algorithm, virtual scheduling: a request conforms unless it is earlier than its theoretical
 * arrival time by more than the tolerance, here (burst − 1) intervals. (ITU-T I.371, annex A.)
 */
export class Gcra implements LimitModel {
  readonly #burst: number;
  #interval: Millis;
  /** Theoretical arrival time of the next request. */
  #tat = Number.NEGATIVE_INFINITY;

  constructor({ rate, burst }: GcraSpec) {
    this.#interval = 1000 / requirePositive(rate, 'rate');
    this.#burst = requireAtLeast(1, burst, 'burst');
  }

  get limit(): PerSecond {
    return 1000 / this.#interval;
  }

  /** A request of several units is accepted as one of a single unit, and delays the next one by all of them. */
  tryAcquire(now: Millis, cost = 1): LimitDecision {
    const earliest = this.#tat - (this.#burst - 1) * this.#interval;
    if (now < earliest - TIME_TOLERANCE) return { accepted: false, retryAfterMs: earliest - now };
    this.#tat = Math.max(this.#tat, now) + cost * this.#interval;
    return ACCEPTED;
  }

  release(): void {}

  quota(now: Millis): Quota {
    const backlogMs = Math.max(0, this.#tat - now);
    const spare = this.#burst * this.#interval - backlogMs;
    return {
      remaining: Math.max(0, Math.floor((spare + TIME_TOLERANCE) / this.#interval)),
      limit: this.#burst,
      resetIn: backlogMs,
      window: this.#burst * this.#interval,
    };
  }

  /** Keeps the backlog in requests, as a token bucket keeps its tokens when the rate changes. */
  setLimit(limit: PerSecond, now: Millis): void {
    const interval = 1000 / requirePositive(limit, 'rate');
    if (this.#tat > now) this.#tat = now + ((this.#tat - now) * interval) / this.#interval;
    this.#interval = interval;
  }
}
