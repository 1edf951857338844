import type { ExchangeGate } from '../admission/bypass-gate.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Millis } from '../scalars.ts';
import type { AttemptOutcome } from './attempt-outcome.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';

/**
 * Adds the gate's Retry-After to a rejection of the upstream that has none. Returns other verdicts unchanged.
 * @param outcome of the last attempt
 */
export function addGateRetryAfter(
  verdict: ExchangeVerdict,
  outcome: AttemptOutcome | undefined,
  gate: Pick<ExchangeGate, 'retries'>,
  ticket: Ticket,
  now: Millis,
): ExchangeVerdict {
  if (verdict.kind !== 'forward' || outcome?.kind !== 'response' || outcome.impliedWait === undefined) return verdict;
  const retryAfterMs = gate.retries.retryAfterRejection(ticket, outcome.impliedWait, now);
  return retryAfterMs === undefined ? verdict : { ...verdict, retryAfterMs };
}
