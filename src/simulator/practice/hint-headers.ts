import type { Millis } from '../../core/scalars.ts';
import type { Quota } from '../../core/hints/hints.ts';
import type { HintStyle } from '../../config/schema/hint-styles.ts';
import {
  toResetEpochSeconds,
  toRetryAfterEpochSeconds,
  roundQuotaToSeconds,
  toRetryAfterSeconds,
} from '../upstream/hint-style.ts';

/**
 * The headers of a hint style, names and values alternating. Styles with a date or an epoch include the `Date` they were
 * computed from: Node caches its own, which may be of the second before.
 * @param retryAfterMs the exact wait, on a rejection
 * @param epochMs wall-clock time of the response in ms since 1970
 */
export function hintHeaders(
  style: HintStyle,
  retryAfterMs: Millis | undefined,
  quota: Quota | undefined,
  epochMs: Millis,
): readonly string[] {
  switch (style) {
    case 'none':
      return NO_HEADERS;
    case 'retry-after':
      return retryAfterMs === undefined ? NO_HEADERS : ['Retry-After', String(toRetryAfterSeconds(retryAfterMs))];
    case 'retry-after-date':
      if (retryAfterMs === undefined) return NO_HEADERS;
      return [
        'Date',
        httpDate(epochMs / 1000),
        'Retry-After',
        httpDate(toRetryAfterEpochSeconds(epochMs, retryAfterMs)),
      ];
    case 'ratelimit':
      return quota === undefined ? NO_HEADERS : rateLimitHeaders(roundQuotaToSeconds(quota));
    case 'x-ratelimit':
      return quota === undefined
        ? NO_HEADERS
        : ['Date', httpDate(epochMs / 1000), ...xRateLimitHeaders(quota, epochMs)];
  }
}

const NO_HEADERS: readonly string[] = [];

/** draft-ietf-httpapi-ratelimit-headers-10: requests in flight are a quota of a unit of their own. */
function rateLimitHeaders({ remaining, limit, resetIn, window }: Quota): readonly string[] {
  const policy = window === undefined ? `;q=${limit};qu="concurrent-requests"` : `;q=${limit};w=${window}`;
  const reset = resetIn === undefined ? '' : `;t=${resetIn}`;
  return ['RateLimit-Policy', `"practice"${policy}`, 'RateLimit', `"practice";r=${remaining}${reset}`];
}

function xRateLimitHeaders(quota: Quota, epochMs: Millis): readonly string[] {
  const { remaining, limit } = roundQuotaToSeconds(quota);
  const headers = ['X-RateLimit-Limit', String(limit), 'X-RateLimit-Remaining', String(remaining)];
  if (quota.resetIn !== undefined) {
    headers.push('X-RateLimit-Reset', String(toResetEpochSeconds(epochMs, quota.resetIn)));
  }
  return headers;
}

let formatted = { seconds: Number.NaN, text: '' };

/** Caches the last date: all responses within a second carry the same one, and formatting is expensive. */
function httpDate(at: number): string {
  const seconds = Math.floor(at);
  if (seconds !== formatted.seconds) formatted = { seconds, text: new Date(seconds * 1000).toUTCString() };
  return formatted.text;
}
