import type { Millis } from '../types.ts';
import { parseHttpDate } from './http-date.ts';
import { parseDecimal, plausibleDelay } from './numbers.ts';

/**
 * How long a Retry-After asks to wait: delta seconds, decimals tolerated, or an HTTP-date (RFC 9110 §10.2.3) relative
 * to `sentAt`, the epoch ms at which the answer says it was made.
 * @returns undefined when unparsable, in the past, or beyond LONGEST.
 */
export function readRetryAfter(value: string, sentAt: () => Millis): Millis | undefined {
  const delay = parseRetryAfter(value, sentAt);
  return delay === undefined ? undefined : plausibleDelay(delay);
}

/** The same as it stands: below 0 for a date in the past, and of any length. @returns undefined when unparsable */
export function parseRetryAfter(value: string, sentAt: () => Millis): Millis | undefined {
  const seconds = parseDecimal(value);
  if (seconds !== undefined) return seconds * 1000;
  const origin = sentAt();
  const date = parseHttpDate(value.trim(), origin);
  return date === undefined ? undefined : date - origin;
}

/**
 * Whether a Retry-After on this status is about sending again. RFC 9110 §10.2.3 gives it a meaning on 503 and 3xx,
 * RFC 6585 §4 on 429; upstreams use it on every 5xx, on 403 for quotas (GitHub), on 409 for locks, on 425, and on 202
 * for "ask again about this". On a 3xx it belongs to whoever follows the redirect, and the client does that; elsewhere
 * it is left over from a template, and obeying it would hold traffic that the upstream has just served.
 */
export function heedsRetryAfter(status: number): boolean {
  return (
    status === 429 ||
    (status >= 500 && status <= 599) ||
    status === 403 ||
    status === 409 ||
    status === 425 ||
    status === 202
  );
}
