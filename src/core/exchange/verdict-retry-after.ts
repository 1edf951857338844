import type { Gate } from '../admission/gate.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Millis, Outcome, Verdict } from './attempt-outcome.ts';

/**
 * A refusal of the upstream's that says no time is given the one that holds here. All else stays as it is.
 * @param outcome of the last attempt
 */
export function withRetryAfter(
  verdict: Verdict,
  outcome: Outcome | undefined,
  gate: Pick<Gate, 'comeBack'>,
  ticket: Ticket,
  now: Millis,
): Verdict {
  if (verdict.kind !== 'forward' || outcome?.kind !== 'response' || outcome.impliedWait === undefined) return verdict;
  const retryAfter = gate.comeBack(ticket, outcome.impliedWait, now);
  return retryAfter === undefined ? verdict : { ...verdict, retryAfter };
}
