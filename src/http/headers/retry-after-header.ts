/** The Retry-After of answers of 429 and 503, which all have one: the upstream's own, as it came, or ours. */
import { formatRetryAfter, MAX_HINT, readDate, readWait } from '../../core/hints/read-hints.ts';
import { parseDelay } from '../../core/hints/parse-delay.ts';
import { larger } from '../../core/hints/hint-numbers.ts';
import type { RetryAfterSource } from '../../core/events/proxy-events.ts';
import type { Millis, Outcome, Random } from '../../core/exchange/attempt-outcome.ts';
import { isForwarded } from './forward-headers.ts';
import { without } from './raw-headers.ts';
import type { Head } from '../response/client-response.ts';

/** Whether an answer of this status says when to come back. */
export function asksToComeBack(status: number): boolean {
  return status === 429 || status === 503;
}

/**
 * Whether the client gets a Retry-After of the upstream's: whatever it says, it is the upstream's to say. One that the
 * upstream lists in Connection ends here.
 */
export function hasRetryAfter(headers: readonly string[]): boolean {
  return isForwarded(headers, 'retry-after');
}

/** With when its client is to come back, where the Retry-After of the answer does not say it. */
export function withImpliedWait(outcome: Response, headers: readonly string[], wallClock: Millis): Outcome {
  const { hints } = outcome;
  if (!hasRetryAfter(headers)) return { ...outcome, impliedWait: readWait(headers, hints, wallClock) };
  // The quota beside it may say that it will not be kept.
  return endsBefore(headers, hints.retryAfter, wallClock) ? { ...outcome, impliedWait: hints.retryAfter } : outcome;
}

type Response = Extract<Outcome, { readonly kind: 'response' }>;

/** Whether the Retry-After of an answer is over a second or more before `delay` is. */
export function endsBefore(headers: readonly string[], delay: Millis | undefined, wallClock: Millis): delay is Millis {
  const own = delay === undefined ? undefined : readOwn(headers, wallClock);
  return delay !== undefined && own !== undefined && own + 1000 <= delay;
}

function readOwn(headers: readonly string[], wallClock: Millis): Millis | undefined {
  const values = headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === 'retry-after');
  const delays = values.map((value) => parseDelay(value, () => readDate(headers, wallClock)));
  return delays.reduce((longest, delay) => larger(longest, delay), undefined);
}

/** Whole seconds. Up to five minutes rounded up or down at random, as `formatRetryAfter` does; beyond that, up. */
export function secondsOf(delay: Millis, random: Random): number {
  return delay > MAX_HINT ? Math.ceil(delay / 1000) : Number(formatRetryAfter(delay, random));
}

/** RateLimit of a 429 of ours, or of one that has only our Retry-After. */
export function rateLimitOf(seconds: number): string {
  return `"tidegate";r=0;t=${seconds}`;
}

/** The head with a Retry-After of ours in place of any other. @param delay undefined: as it is */
export function withRetryAfter(head: Head, delay: Millis | undefined, random: Random): Head {
  if (delay === undefined) return head;
  const retryAfter = secondsOf(delay, random);
  const added = [...(head.added ?? []), 'Retry-After', String(retryAfter)];
  if (head.status === 429 && !isForwarded(head.headers, 'ratelimit')) added.push('RateLimit', rateLimitOf(retryAfter));
  return { ...head, headers: without(head.headers, 'retry-after'), added, retryAfter };
}

/** What a forwarded answer says of coming back, for the log. Both undefined where it says nothing. */
export interface Said {
  /** In seconds; undefined where it cannot be read. */
  readonly retryAfter: number | undefined;
  readonly from: RetryAfterSource | undefined;
}

const NOTHING: Said = { retryAfter: undefined, from: undefined };

export function saidIn({ status, headers, retryAfter }: Head, wallClock: () => Millis): Said {
  if (retryAfter !== undefined) return { retryAfter, from: 'tidegate' };
  if (!asksToComeBack(status) || !hasRetryAfter(headers)) return NOTHING;
  const wait = readOwn(headers, wallClock());
  return { retryAfter: wait === undefined ? undefined : Math.max(0, wait) / 1000, from: 'upstream' };
}
