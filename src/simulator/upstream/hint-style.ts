import type { HintStyle } from '../../config/schema/hint-styles.ts';
import { MAX_HINTED_DELAY } from '../../core/hints/hint-numbers.ts';
import type { Hints, Quota } from '../../core/hints/hints.ts';
import type { Millis } from '../../core/scalars.ts';
import { NO_HINTS } from '../../core/hints/hints.ts';

export function includesQuota(style: HintStyle): boolean {
  return style === 'ratelimit' || style === 'x-ratelimit';
}

/**
 * Returns what `readHints` would return for the headers of this style.
 * @param retryAfterMs the exact wait, on a rejection
 * @param epochMs wall-clock time of the response in ms since 1970; upstream and proxy have the same clock
 */
export function buildHints(
  style: HintStyle,
  retryAfterMs: Millis | undefined,
  quota: Quota | undefined,
  epochMs: Millis,
): Hints {
  switch (style) {
    case 'none':
      return NO_HINTS;
    case 'retry-after':
      return retryAfterMs === undefined ? NO_HINTS : retryAfterHints(1000 * toRetryAfterSeconds(retryAfterMs));
    case 'retry-after-date':
      return retryAfterMs === undefined
        ? NO_HINTS
        : retryAfterHints(untilSecond(toRetryAfterEpochSeconds(epochMs, retryAfterMs), epochMs));
    case 'ratelimit': {
      // A limit on requests in flight does not imply a rate.
      if (quota?.window === undefined) return NO_HINTS;
      const { remaining, limit, resetIn, window } = roundQuotaToSeconds(quota);
      return quotaHints({ remaining, limit, resetIn: toMillis(resetIn), window: toMillis(window) });
    }
    case 'x-ratelimit': {
      if (quota === undefined) return NO_HINTS;
      const { remaining, limit } = roundQuotaToSeconds(quota);
      const resetIn =
        quota.resetIn === undefined ? undefined : untilSecond(toResetEpochSeconds(epochMs, quota.resetIn), epochMs);
      return quotaHints({ remaining, limit, resetIn, window: undefined });
    }
  }
}

function retryAfterHints(retryAfter: Millis): Hints {
  return { ...NO_HINTS, retryAfterMs: Math.min(MAX_HINTED_DELAY, retryAfter) };
}

function quotaHints(quota: Quota): Hints {
  if (quota.remaining > 0 || quota.resetIn === undefined) return { ...NO_HINTS, quota };
  return { ...NO_HINTS, quota: { ...quota, resetIn: Math.min(MAX_HINTED_DELAY, quota.resetIn) } };
}

function toMillis(seconds: number | undefined): Millis | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

/** The time until then, in whole milliseconds. @param second since 1970 */
function untilSecond(second: number, epoch: Millis): Millis {
  return Math.round(1000 * second - epoch);
}

/** A wait as the seconds of `Retry-After`: rounded up, at least 1. */
export function toRetryAfterSeconds(retryAfterMs: Millis): number {
  return Math.max(1, Math.ceil(retryAfterMs / 1000));
}

/** The end of a wait as a date, in seconds since 1970: rounded up, and in a later second than the response. */
export function toRetryAfterEpochSeconds(epochMs: Millis, retryAfterMs: Millis): number {
  return Math.max(Math.floor(epochMs / 1000) + 1, toResetEpochSeconds(epochMs, retryAfterMs));
}

/** A reset as `X-RateLimit-Reset` gives it, in seconds since 1970: rounded up. */
export function toResetEpochSeconds(epochMs: Millis, resetIn: Millis): number {
  return Math.ceil((epochMs + resetIn) / 1000);
}

/**
 * Rounds a quota to whole seconds (`resetIn`, `window`) and requests. A window that is not a whole number of seconds becomes
 * the next longer one, with proportionally more requests: limit ÷ window stays the exact rate.
 */
export function roundQuotaToSeconds(quota: Quota): Quota {
  const window = quota.window === undefined ? undefined : Math.max(1, Math.ceil(quota.window / 1000 - ROUNDING));
  const stretch = quota.window === undefined || window === undefined ? 1 : (window * 1000) / quota.window;
  return {
    remaining: Math.floor(quota.remaining),
    limit: quota.limit === undefined ? undefined : Math.floor(quota.limit * stretch + ROUNDING),
    resetIn: quota.resetIn === undefined ? undefined : Math.ceil(quota.resetIn / 1000),
    window,
  };
}

/** A quotient this close to a whole number differs from it by rounding alone. */
const ROUNDING = 1e-9;
