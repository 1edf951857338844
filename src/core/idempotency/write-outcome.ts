import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import type { RequestFacts } from '../exchange/request-facts.ts';
import type { RetryPolicy } from '../retry/retry-policy.ts';
import { isNamedByKey, isSafe } from '../exchange/request-facts.ts';
import { isThrottled } from '../exchange/attempt-outcome.ts';

/**
 * The meaning of an attempt's outcome for its write:
 *
 * | outcome | means |
 * | --- | --- |
 * | 2xx, a response marked as replayed, a 402 to a POST or PATCH with a key | `answered`: the response to the write, now or earlier |
 * | 429 and other throttled responses, the statuses of `retry.notProcessed` | `not_processed`: this attempt did nothing |
 * | 3xx, any other 4xx | `rejected`: this attempt did nothing; it may come from a router or a firewall in front |
 * | any other 5xx, a response marked `Tidegate-Outcome: unknown`, a broken connection, a timeout | `may_have_taken_effect` |
 * | no connection, a refused stream | `nothing_sent` |
 *
 * Only `answered` says anything about earlier attempts. A 402 to a write that its method alone makes repeatable does not: a payment may
 * be declined because an earlier attempt has made it.
 */
export type WriteOutcome = 'answered' | 'not_processed' | 'rejected' | 'may_have_taken_effect' | 'nothing_sent';

/** Not implemented, unavailable, not this version of HTTP (RFC 9110 §15.6); overloaded (529), used by some providers. */
export const NOT_PROCESSED: ReadonlySet<number> = new Set([501, 503, 505, 529]);

export function classifyWrite(
  request: Parameters<typeof isNamedByKey>[0],
  outcome: AttemptOutcome,
  notProcessed: ReadonlySet<number> = NOT_PROCESSED,
): WriteOutcome {
  if (outcome.kind === 'error') return outcome.sent ? 'may_have_taken_effect' : 'nothing_sent';
  const { status, hints, isReplayed, isUnknown } = outcome;
  if (isReplayed === true) return 'answered';
  if (isUnknown === true) return 'may_have_taken_effect';
  if (isThrottled(status, hints)) return 'not_processed';
  if (hints.lock) return 'rejected';
  if (status < 300 || (status === 402 && isNamedByKey(request))) return 'answered';
  if (notProcessed.has(status)) return 'not_processed';
  return status >= 500 ? 'may_have_taken_effect' : 'rejected';
}

/**
 * Whether a response resolves the write permanently. A 402 does not, because the write may be tried again.
 * @param mayUseOtherEndpoints the write may go to other endpoints, which do not know this one's keys: a stored decline says
 *   nothing about them
 */
export function isFinalAnswer(outcome: AttemptOutcome, mayUseOtherEndpoints = false): boolean {
  if (outcome.kind !== 'response') return false;
  return outcome.status < 300 || (outcome.isReplayed === true && !mayUseOtherEndpoints);
}

/** Whether a write may have taken effect although its outcome is a failure (RFC 9110 §9.2.2). */
export function mayHaveTakenEffect(
  request: Pick<RequestFacts, 'keyed' | 'method' | 'replaySafety'>,
  outcome: AttemptOutcome,
  { notProcessed }: Pick<RetryPolicy, 'notProcessed'> = {},
): boolean {
  return !isSafe(request) && classifyWrite(request, outcome, notProcessed) === 'may_have_taken_effect';
}
