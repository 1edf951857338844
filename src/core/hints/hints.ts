import type { Millis } from '../scalars.ts';
import { MAX_HINTED_DELAY } from './hint-numbers.ts';

/** What an upstream's response says about pacing, in one normal form. Delays count from the arrival of the response head. */
export interface Hints {
  /** "Not before": from Retry-After, retry-after-ms or gRPC pushback. Within [0, 300 000]. */
  readonly retryAfterMs: Millis | undefined;
  /** `retryAfterMs` before it was bounded: no client is told to return earlier. Absent if it was within the bound. */
  readonly unboundedRetryAfterMs?: Millis;
  /** From RateLimit, X-RateLimit-* or X-Shopify-Shop-Api-Call-Limit. */
  readonly quota: Quota | undefined;
  /** Whether the upstream itself asks for a retry: Stripe-Should-Retry or gRPC pushback. */
  readonly retryAdvice: 'retry' | 'never' | undefined;
  /** Why the upstream throttled, as it states it (Stripe-Rate-Limited-Reason), at most 64 characters. */
  readonly reason: string | undefined;
  /** True if the rejection is about one object, not about the rate (Stripe's lock_timeout). It never cuts a rate. */
  readonly lock: boolean;
  /**
   * Whether the configuration classifies the response as throttled, whatever its status: GitHub's 403, Shopify's 200, or a
   * 429 that has another meaning. Absent: a 429 is throttled, any other status is not.
   */
  readonly throttled?: boolean;
  /** The response comes from a cache (its Age is above 0), so it says nothing about the upstream's present rate or health. */
  readonly isFromCache?: boolean;
  /**
   * The limit that the rejection is about: the name of a nested limit, or '' for the upstream's own. Of several names, the
   * innermost limit of the request counts. Absent: the innermost limit of the request. An empty list: a limit that is not
   * configured, and so none of the request.
   */
  readonly limit?: string | readonly string[];
  /** The limit that the quota belongs to, in the same form. Absent: the same as `limit`. */
  readonly quotaLimit?: string | readonly string[];
}

export interface Quota {
  /** Requests left in the window, ≥ 0. */
  readonly remaining: number;
  /** As reported by the upstream. Present if requests sent since then were subtracted from `remaining`. */
  readonly reportedRemaining?: number;
  /** Requests in a whole window; undefined if the upstream does not report it. */
  readonly limit: number | undefined;
  /** Time until the quota is whole again; undefined if the upstream does not report it. */
  readonly resetIn: Millis | undefined;
  /** Length of the window; undefined if the upstream does not report it. */
  readonly window: Millis | undefined;
}

export const NO_HINTS: Hints = Object.freeze({
  retryAfterMs: undefined,
  quota: undefined,
  retryAdvice: undefined,
  reason: undefined,
  lock: false,
});

/** Bounds the "not before" for Tidegate's own retries and holds, and keeps it as it is for the client. */
export function boundRetryAfter(hints: Hints): Hints {
  const { retryAfterMs } = hints;
  if (retryAfterMs === undefined || retryAfterMs <= MAX_HINTED_DELAY) return hints;
  return { ...hints, retryAfterMs: MAX_HINTED_DELAY, unboundedRetryAfterMs: retryAfterMs };
}

/** The "not before" of a response for its client. */
export function statedRetryAfter({ retryAfterMs, unboundedRetryAfterMs }: Hints): Millis | undefined {
  return unboundedRetryAfterMs ?? retryAfterMs;
}
