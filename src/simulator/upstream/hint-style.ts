import { MAX_HINT } from '../../core/hints/read-hints.ts';
import type { Hints, Millis, Quota } from '../../core/exchange/attempt-outcome.ts';
import { NO_HINTS } from '../../core/exchange/attempt-outcome.ts';

export const HINT_STYLES = ['none', 'retry-after', 'retry-after-date', 'ratelimit', 'x-ratelimit'] as const;

/** What an upstream says of its limit: nothing, the wait on a 429 (seconds or a date), or its quota on every answer. */
export type HintStyle = (typeof HINT_STYLES)[number];

export function tellsQuota(style: HintStyle): boolean {
  return style === 'ratelimit' || style === 'x-ratelimit';
}

/**
 * What `readHints` makes of the headers of this style, without the headers.
 * @param wait the true wait, on a refusal
 * @param epoch wall-clock time of the answer: the upstream's clock, and ours
 */
export function hearHints(style: HintStyle, wait: Millis | undefined, quota: Quota | undefined, epoch: Millis): Hints {
  switch (style) {
    case 'none':
      return NO_HINTS;
    case 'retry-after':
      return wait === undefined ? NO_HINTS : hearWait(1000 * waitSeconds(wait));
    case 'retry-after-date':
      return wait === undefined ? NO_HINTS : hearWait(untilSecond(retryAtSeconds(epoch, wait), epoch));
    case 'ratelimit': {
      // Places in flight say nothing of a rate.
      if (quota?.window === undefined) return NO_HINTS;
      const { remaining, limit, resetIn, window } = toldQuota(quota);
      return hearQuota({ remaining, limit, resetIn: toMillis(resetIn), window: toMillis(window) });
    }
    case 'x-ratelimit': {
      if (quota === undefined) return NO_HINTS;
      const { remaining, limit } = toldQuota(quota);
      const resetIn = quota.resetIn === undefined ? undefined : untilSecond(resetSeconds(epoch, quota.resetIn), epoch);
      return hearQuota({ remaining, limit, resetIn, window: undefined });
    }
  }
}

function hearWait(retryAfter: Millis): Hints {
  return { ...NO_HINTS, retryAfter: Math.min(MAX_HINT, retryAfter) };
}

function hearQuota(quota: Quota): Hints {
  if (quota.remaining > 0 || quota.resetIn === undefined) return { ...NO_HINTS, quota };
  return { ...NO_HINTS, quota: { ...quota, resetIn: Math.min(MAX_HINT, quota.resetIn) } };
}

function toMillis(seconds: number | undefined): Millis | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

/** How long until then, in whole milliseconds. @param second since 1970 */
function untilSecond(second: number, epoch: Millis): Millis {
  return Math.round(1000 * second - epoch);
}

/** A wait as `Retry-After` tells it: never too short, at least 1. */
export function waitSeconds(wait: Millis): number {
  return Math.max(1, Math.ceil(wait / 1000));
}

/** The end of a wait as a date tells it, in seconds since 1970: never too early, and in a later second than the answer. */
export function retryAtSeconds(epoch: Millis, wait: Millis): number {
  return Math.max(Math.floor(epoch / 1000) + 1, resetSeconds(epoch, wait));
}

/** A reset as `X-RateLimit-Reset` tells it, in seconds since 1970: never too early. */
export function resetSeconds(epoch: Millis, resetIn: Millis): number {
  return Math.ceil((epoch + resetIn) / 1000);
}

/**
 * A quota in whole seconds (`resetIn`, `window`) and requests. A window that is no whole number of seconds is told as
 * the next longer one with as many requests as that would take: limit ÷ window stays the true rate.
 */
export function toldQuota(quota: Quota): Quota {
  const window = quota.window === undefined ? undefined : Math.max(1, Math.ceil(quota.window / 1000 - ROUNDING));
  const stretch = quota.window === undefined || window === undefined ? 1 : (window * 1000) / quota.window;
  return {
    remaining: Math.floor(quota.remaining),
    limit: quota.limit === undefined ? undefined : Math.floor(quota.limit * stretch + ROUNDING),
    resetIn: quota.resetIn === undefined ? undefined : Math.ceil(quota.resetIn / 1000),
    window,
  };
}

/** A quotient this close to a whole number is meant to be it. */
const ROUNDING = 1e-9;
