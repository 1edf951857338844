import type { Millis, Quota } from '../../core/exchange/attempt-outcome.ts';

/** What a limit says to one request. */
export type Admission =
  | { readonly accepted: true }
  /** `retryAfter`: how long until one more would pass if nobody else came; 0 when only the end of another makes room. */
  | { readonly accepted: false; readonly retryAfter: Millis };

/** A limit as an upstream enforces it, exactly and in virtual time. `now` never goes back. */
export interface LimitModel {
  /** What `retarget` sets: requests a second (buckets), in a window, or in flight; `Infinity` when there is none. */
  readonly limit: number;

  /** May the request that arrives at `now` pass? Charges it if so. */
  arrive(now: Millis): Admission;

  /** A request that was accepted has ended. */
  leave(now: Millis): void;

  /** What an upstream that tells its quota would tell at `now`, unrounded; undefined when there is no limit. */
  quota(now: Millis): Quota | undefined;

  /** From `now` on the limit is another. What has been charged stays charged. */
  retarget(limit: number, now: Millis): void;
}

export const ACCEPTED: Admission = Object.freeze({ accepted: true });

/** In milliseconds: sums of fractional times are off by less, so being early by this much is being on time. */
export const NANOSECOND: Millis = 1e-6;
