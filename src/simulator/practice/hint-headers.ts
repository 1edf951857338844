import type { Millis, Quota } from '../../core/exchange/attempt-outcome.ts';
import type { HintStyle } from '../upstream/hint-style.ts';
import { resetSeconds, retryAtSeconds, toldQuota, waitSeconds } from '../upstream/hint-style.ts';

/**
 * The headers of a hint style, names and values in turn. Those with a date or an epoch bring the `Date` they were
 * reckoned from, since Node's own is cached and may be of the second before.
 * @param wait the true wait, on a refusal
 * @param epoch wall-clock time of the answer
 */
export function hintHeaders(
  style: HintStyle,
  wait: Millis | undefined,
  quota: Quota | undefined,
  epoch: Millis,
): readonly string[] {
  switch (style) {
    case 'none':
      return NOTHING;
    case 'retry-after':
      return wait === undefined ? NOTHING : ['Retry-After', String(waitSeconds(wait))];
    case 'retry-after-date':
      if (wait === undefined) return NOTHING;
      return ['Date', httpDate(epoch / 1000), 'Retry-After', httpDate(retryAtSeconds(epoch, wait))];
    case 'ratelimit':
      return quota === undefined ? NOTHING : rateLimit(toldQuota(quota));
    case 'x-ratelimit':
      return quota === undefined ? NOTHING : ['Date', httpDate(epoch / 1000), ...xRateLimit(quota, epoch)];
  }
}

const NOTHING: readonly string[] = [];

/** draft-ietf-httpapi-ratelimit-headers-10: places in flight are a quota of another unit than requests. */
function rateLimit({ remaining, limit, resetIn, window }: Quota): readonly string[] {
  const policy = window === undefined ? `;q=${limit};qu="concurrent-requests"` : `;q=${limit};w=${window}`;
  const reset = resetIn === undefined ? '' : `;t=${resetIn}`;
  return ['RateLimit-Policy', `"practice"${policy}`, 'RateLimit', `"practice";r=${remaining}${reset}`];
}

function xRateLimit(quota: Quota, epoch: Millis): readonly string[] {
  const { remaining, limit } = toldQuota(quota);
  const headers = ['X-RateLimit-Limit', String(limit), 'X-RateLimit-Remaining', String(remaining)];
  if (quota.resetIn !== undefined) headers.push('X-RateLimit-Reset', String(resetSeconds(epoch, quota.resetIn)));
  return headers;
}

let formatted = { seconds: Number.NaN, text: '' };

/** Remembers its last answer: within a second all answers carry the same date, and formatting one is dear. */
function httpDate(at: number): string {
  const seconds = Math.floor(at);
  if (seconds !== formatted.seconds) formatted = { seconds, text: new Date(seconds * 1000).toUTCString() };
  return formatted.text;
}
