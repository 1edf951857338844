import type { Millis } from '../exchange/attempt-outcome.ts';
import { parseDelay } from './parse-delay.ts';
import { plausibleDelay } from './hint-numbers.ts';

/**
 * How long a Retry-After asks to wait (RFC 9110 §10.2.3), as `parseDelay` reads it, at most LONGEST.
 * @param now as of `parseDelay`
 * @returns undefined when unparsable or in the past
 */
export function readRetryAfter(value: string, now: () => Millis): Millis | undefined {
  const delay = parseDelay(value, now);
  return delay === undefined ? undefined : plausibleDelay(delay);
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
