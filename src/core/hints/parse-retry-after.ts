import type { Millis } from '../scalars.ts';
import { parseDelay } from './parse-delay.ts';
import { clampDelay } from './hint-numbers.ts';

/**
 * The delay of a Retry-After (RFC 9110 §10.2.3), as `parseDelay` reads it, at most MAX_DELAY.
 * @param now as for `parseDelay`
 * @returns undefined if it cannot be parsed or is in the past
 */
export function parseRetryAfter(value: string, now: () => Millis): Millis | undefined {
  const delay = parseDelay(value, now);
  return delay === undefined ? undefined : clampDelay(delay);
}

/**
 * True if a Retry-After on this status is about sending the request again. RFC 9110 §10.2.3 gives it a meaning on 503 and 3xx,
 * RFC 6585 §4 on 429; upstreams use it on every 5xx, on 403 for quotas (GitHub), on 409 for locks, on 425, and on 202
 * for "poll again". On a 3xx it is for the client, which follows the redirect. On other statuses it is left over from a
 * template, and obeying it would hold traffic that the upstream has just served.
 */
export function honorsRetryAfter(status: number): boolean {
  return (
    status === 429 ||
    (status >= 500 && status <= 599) ||
    status === 403 ||
    status === 409 ||
    status === 425 ||
    status === 202
  );
}
