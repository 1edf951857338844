import type { ExchangeGate } from '../admission/bypass-gate.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Millis } from '../scalars.ts';
import { type AttemptOutcome, isThrottled } from './attempt-outcome.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';

/**
 * Adds the gate's Retry-After to a rejection of the upstream that has none, or that does not apply to the account with which a repeat
 * would be sent. Returns other verdicts unchanged.
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
  const { impliedWait } = outcome;
  const isOfAccount = ticket.account !== undefined && isThrottled(outcome.status, outcome.hints);
  if (impliedWait === undefined && !isOfAccount) return verdict;
  const retryAfterMs = gate.retries.retryAfterRejection(ticket, impliedWait, now, isOfAccount);
  return retryAfterMs === undefined ? verdict : { ...verdict, retryAfterMs };
}
