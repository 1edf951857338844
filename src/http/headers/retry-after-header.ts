/** The Retry-After of 429 and 503 responses. Each has one: the upstream's, unchanged, or ours. */
import { formatRetryAfter } from '../../core/hints/format-retry-after.ts';
import { MAX_HINTED_DELAY, maxDefined } from '../../core/hints/hint-numbers.ts';
import { readServerTime } from '../../core/hints/server-time.ts';
import { readImpliedWait } from '../../core/hints/read-hints.ts';
import { parseDelay } from '../../core/hints/parse-delay.ts';
import type { RetryAfterSource } from '../../core/events/event-labels.ts';
import type { Millis, Random } from '../../core/scalars.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import { hasForwardedHeader } from './forward-headers.ts';
import { withoutHeader } from './raw-headers.ts';
import type { ResponseHead } from '../response/response-head.ts';

/** Whether responses of this status have a Retry-After. */
export function mayCarryRetryAfter(status: number): boolean {
  return status === 429 || status === 503;
}

/** Whether the upstream's Retry-After is forwarded: it is, whatever its value, unless the upstream lists it in Connection. */
export function hasUpstreamRetryAfter(headers: readonly string[]): boolean {
  return hasForwardedHeader(headers, 'retry-after');
}

/** Adds the wait that the response implies, if its Retry-After is missing or too short. */
export function addImpliedWait(
  outcome: ResponseOutcome,
  headers: readonly string[],
  wallClock: Millis,
): AttemptOutcome {
  const hasRetryAfter = hasUpstreamRetryAfter(headers);
  const impliedWait = readImpliedWait(headers, outcome.hints, wallClock, hasRetryAfter);
  // A quota in the response may reset later than Retry-After says.
  const isMissing = !hasRetryAfter || isRetryAfterTooShort(headers, impliedWait, wallClock);
  return isMissing ? { ...outcome, impliedWait } : outcome;
}

type ResponseOutcome = Extract<AttemptOutcome, { readonly kind: 'response' }>;

/** Whether the Retry-After of a response ends at least a second before `delay`. */
function isRetryAfterTooShort(headers: readonly string[], delay: Millis, wallClock: Millis): boolean {
  const headerDelay = readRetryAfterHeaders(headers, wallClock);
  return headerDelay !== undefined && delay > 0 && headerDelay + 1000 <= delay;
}

function readRetryAfterHeaders(headers: readonly string[], wallClock: Millis): Millis | undefined {
  const values = headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === 'retry-after');
  const delays = values.map((value) => parseDelay(value, () => readServerTime(headers, wallClock)));
  return delays.reduce((longest, delay) => maxDefined(longest, delay), undefined);
}

/** Whole seconds. Up to five minutes rounded up or down at random, as `formatRetryAfter` does; longer times rounded up. */
export function toRetryAfterSeconds(delay: Millis, random: Random): number {
  return delay > MAX_HINTED_DELAY ? Math.ceil(delay / 1000) : Number(formatRetryAfter(delay, random));
}

/** The name of the limit in RateLimit and in problem documents. */
export const POLICY_NAME = 'tidegate';

/** The RateLimit field of our own 429, and of an upstream's that has our Retry-After. */
export function formatRateLimit(seconds: number): string {
  return `"${POLICY_NAME}";r=0;t=${seconds}`;
}

/** Replaces the Retry-After of a head by ours. @param delay undefined: the head stays as it is */
export function setRetryAfter(head: ResponseHead, delay: Millis | undefined, random: Random): ResponseHead {
  if (delay === undefined) return head;
  const retryAfterSeconds = toRetryAfterSeconds(delay, random);
  const addedHeaders = [...(head.addedHeaders ?? []), 'Retry-After', String(retryAfterSeconds)];
  if (head.status === 429 && !hasForwardedHeader(head.headers, 'ratelimit')) {
    addedHeaders.push('RateLimit', formatRateLimit(retryAfterSeconds));
  }
  return { ...head, headers: withoutHeader(head.headers, 'retry-after'), addedHeaders, retryAfterSeconds };
}

/**
 * Adds a Retry-After to a kept 429 or 503: repeats of its write get it as long as it is kept. Adds no RateLimit, because the response
 * says nothing about a limit now. Returns other heads unchanged.
 * @param keptFor how long it is kept; a second at least is written
 */
export function addKeptRetryAfter(head: ResponseHead, keptFor: Millis): ResponseHead {
  if (!mayCarryRetryAfter(head.status)) return head;
  const retryAfterSeconds = Math.max(1, Math.ceil(keptFor / 1000));
  return { ...head, addedHeaders: ['Retry-After', String(retryAfterSeconds)], retryAfterSeconds };
}

/** The Retry-After of a response, for the log. Both undefined if it has none. */
export interface RetryAfterInfo {
  /** Undefined if it cannot be parsed. */
  readonly retryAfterSeconds: number | undefined;
  readonly from: RetryAfterSource | undefined;
}

export const NO_RETRY_AFTER: RetryAfterInfo = { retryAfterSeconds: undefined, from: undefined };

export function retryAfterInfo(
  { status, headers, retryAfterSeconds }: ResponseHead,
  wallClock: () => Millis,
): RetryAfterInfo {
  if (retryAfterSeconds !== undefined) return { retryAfterSeconds, from: 'tidegate' };
  if (!mayCarryRetryAfter(status) || !hasUpstreamRetryAfter(headers)) return NO_RETRY_AFTER;
  const wait = readRetryAfterHeaders(headers, wallClock());
  return { retryAfterSeconds: wait === undefined ? undefined : Math.max(0, wait) / 1000, from: 'upstream' };
}
