import type { ExchangeGate } from '../admission/bypass-gate.ts';
import type { Ticket } from '../admission/ticket.ts';
import { type Hints, statedRetryAfter } from '../hints/hints.ts';
import type { Millis } from '../scalars.ts';
import { type AttemptOutcome, isThrottled } from './attempt-outcome.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';

/**
 * Adds the gate's Retry-After to a rejection of the upstream that has none, or one that ends before the reset of the client's quotas or
 * does not apply to the account with which a repeat would be sent. Returns other verdicts unchanged.
 * @param outcome of the last attempt
 */
export function addGateRetryAfter(
  verdict: ExchangeVerdict,
  outcome: AttemptOutcome | undefined,
  gate: Pick<ExchangeGate, 'retries'>,
  ticket: Ticket,
  now: Millis,
): ExchangeVerdict {
  if (verdict.kind !== 'forward' || outcome?.kind !== 'response') return verdict;
  const isRejected = isThrottled(outcome.status, outcome.hints);
  const isOfAccount = ticket.account !== undefined && isRejected;
  const atLeast = outcome.impliedWait ?? (isRejected ? waitEndingTooEarly(outcome.hints, ticket, now) : undefined);
  if (atLeast === undefined && !isOfAccount) return verdict;
  const retryAfterMs = gate.retries.retryAfterRejection(ticket, atLeast, now, isOfAccount);
  return retryAfterMs === undefined ? verdict : { ...verdict, retryAfterMs };
}

/** The upstream's own Retry-After, if the client has used up a quota for longer than that. */
function waitEndingTooEarly(hints: Hints, { clientQuota }: Ticket, now: Millis): Millis | undefined {
  const stated = statedRetryAfter(hints);
  return stated !== undefined && (clientQuota?.returnDelay(now) ?? 0) > stated ? stated : undefined;
}
