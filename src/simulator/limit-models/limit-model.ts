import type { Millis } from '../../core/scalars.ts';
import type { ServiceStation } from '../service/service-station.ts';
import type { Quota } from '../../core/hints/hints.ts';

/** The decision of a limit on one request. */
export type LimitDecision =
  | { readonly accepted: true }
  /**
   * `retryAfterMs`: the time until another request would pass if none came before; 0 if only the end of a request in
   * flight frees a slot.
   */
  | { readonly accepted: false; readonly retryAfterMs: Millis };

/** A limit as an upstream enforces it, exact and in virtual time. `now` must not decrease. */
export interface LimitModel {
  /** The value that `setLimit` changes: requests a second (buckets), in a window, or in flight; `Infinity` without a limit. */
  readonly limit: number;

  /** Where accepted requests are served. Without one, each takes its latency, whatever else is in flight. */
  readonly station?: ServiceStation;

  /**
   * Decides on a request that arrives at `now`, and charges it if accepted.
   * @param cost in units; 1 when absent. Other models than a bucket, GCRA and a fixed window count requests
   */
  tryAcquire(now: Millis, cost?: number): LimitDecision;

  /** Ends an accepted request. */
  release(now: Millis): void;

  /** The quota at `now`, unrounded; undefined without a limit. */
  quota(now: Millis): Quota | undefined;

  /** Changes the limit from `now` on. What has been charged stays charged. */
  setLimit(limit: number, now: Millis): void;
}

export const ACCEPTED: LimitDecision = Object.freeze({ accepted: true });

/** In milliseconds. Sums of fractional times are off by less, so a request early by this much counts as on time. */
export const TIME_TOLERANCE: Millis = 1e-6;
