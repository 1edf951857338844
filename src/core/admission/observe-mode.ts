import type { AdmissionResult, GateDecision } from './gate-decision.ts';
import type { Ticket } from './ticket.ts';
import type { Millis } from '../scalars.ts';

const PASSED: GateDecision = { decision: 'passed', why: undefined };
const QUEUED: GateDecision = { decision: 'queued', why: undefined };

/** The gate's decision about a request; in observe mode, the decision that would have been enforced. Undefined: it is queued. */
export function toGateDecision(admission: AdmissionResult | undefined): GateDecision {
  if (admission === undefined) return QUEUED;
  if (admission.kind === 'admitted') return admission.wouldHave ?? PASSED;
  return { decision: 'refused', why: admission.why };
}

/**
 * Observe mode: admits every request and returns the decision that enforcing would have made.
 *
 * The gate decides as usual, with its queues, tokens and shares. A ticket that would have been queued stays in the
 * queue although its request is sent at once: it takes a token when its turn comes, or expires, without any effect on
 * the request. A ticket that would have been refused takes no token. So the decisions are those that enforce mode would
 * have made for the same arrivals. In enforce mode, the arrivals themselves would have differed: a refused client might
 * have returned later, a retry would have been decided again, and the upstream would not have received the requests
 * that it now rejects.
 *
 * Because of the last difference the limit records an overrun: a rejection while more is sent than the limit allows does
 * not mean that the limit's rate is too high. See `AdaptiveRate.onRejected` and `recordOutcome`.
 */
export function admitObserved(ticket: Ticket, decided: AdmissionResult | undefined, now: Millis): AdmissionResult {
  const wouldHave = toGateDecision(decided);
  if (wouldHave.decision !== 'passed') {
    for (const limit of ticket.limits) limit.overrunAt = now;
    ticket.costs?.onUnpaced();
  }
  return { kind: 'admitted', wouldHave };
}
