import type { Outcome, RequestFacts, RetryPolicy } from '../exchange/attempt-outcome.ts';
import { isSafe, isThrottled } from '../exchange/attempt-outcome.ts';

/**
 * What an attempt's outcome says of the write that it carried:
 *
 * | outcome | means |
 * | --- | --- |
 * | 2xx, 402, an answer marked as replayed | `answered`: the upstream's own answer to this write, also to attempts before this one |
 * | 429 and what counts as one, the statuses of `retry.notProcessed` | `not_processed`: this attempt did nothing |
 * | 3xx, any other 4xx | `rejected`: this attempt did nothing; a router or a firewall in front may have said so |
 * | any other 5xx, an answer marked `Tidegate-Outcome: unknown`, a connection that broke, no answer in time | `may_have_happened` |
 * | no connection, a refused stream | `nothing_sent` |
 *
 * Only `answered` says anything of the attempts before.
 */
export type WriteOutcome = 'answered' | 'not_processed' | 'rejected' | 'may_have_happened' | 'nothing_sent';

/** Not implemented, unavailable, not this version of HTTP (RFC 9110 §15.6); overloaded, as some providers call it. */
export const NOT_PROCESSED: ReadonlySet<number> = new Set([501, 503, 505, 529]);

export function classifyWrite(outcome: Outcome, notProcessed: ReadonlySet<number> = NOT_PROCESSED): WriteOutcome {
  if (outcome.kind === 'error') return outcome.sent ? 'may_have_happened' : 'nothing_sent';
  const { status, hints, isReplayed, isUnknown } = outcome;
  if (isReplayed === true) return 'answered';
  if (isUnknown === true) return 'may_have_happened';
  if (isThrottled(status, hints)) return 'not_processed';
  if (hints.lock) return 'rejected';
  if (status < 300 || status === 402) return 'answered';
  if (notProcessed.has(status)) return 'not_processed';
  return status >= 500 ? 'may_have_happened' : 'rejected';
}

/**
 * Whether an answer says for good what came of the write. A 402 does not, for the write may be tried again.
 * @param mayAskOthers the write may go to other endpoints too, which do not know this one's keys: a stored decline says nothing of them
 */
export function isDoneBy(outcome: Outcome, mayAskOthers = false): boolean {
  if (outcome.kind !== 'response') return false;
  return outcome.status < 300 || (outcome.isReplayed === true && !mayAskOthers);
}

/** Whether a write may have taken effect although this outcome says nothing good (RFC 9110 §9.2.2). */
export function mayHaveHappened(
  request: Pick<RequestFacts, 'method' | 'nature'>,
  outcome: Outcome,
  { notProcessed }: Pick<RetryPolicy, 'notProcessed'> = {},
): boolean {
  return !isSafe(request) && classifyWrite(outcome, notProcessed) === 'may_have_happened';
}
