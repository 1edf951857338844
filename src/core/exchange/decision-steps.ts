import type { Gate } from '../admission/gate.ts';
import type { AdmissionResult } from '../admission/gate-decision.ts';
import type { Ticket } from '../admission/ticket.ts';
import { toGateDecision } from '../admission/observe-mode.ts';
import type { Millis } from '../scalars.ts';
import type { TraceStep } from './exchange-observer.ts';

/** Returns the figures that explain why a ticket was just queued or refused. */
export type DecisionExplainer = Pick<Gate, 'decisionDetails'>;

/** The step for the gate's decision on an arrival; undefined if it passed, or would have. @param admission undefined: queued */
export function buildDecisionStep(
  gate: DecisionExplainer,
  ticket: Ticket,
  admission: AdmissionResult | undefined,
  now: Millis,
): TraceStep | undefined {
  const { decision, why } = toGateDecision(admission);
  if (decision === 'passed') return undefined;
  return {
    what: 'decided',
    at: now,
    decision,
    why,
    retryAfterMs: admission?.kind === 'refused' ? admission.retryAfterMs : undefined,
    isObserved: admission?.kind === 'admitted',
    details: gate.decisionDetails(ticket, now),
  };
}

/** The step for the end of a wait in the queue. */
export function buildDequeuedStep(
  gate: DecisionExplainer,
  ticket: Ticket,
  admission: AdmissionResult,
  waited: Millis,
  now: Millis,
): TraceStep {
  const step = { what: 'dequeued', at: now, waited } as const;
  if (admission.kind === 'admitted') return { ...step, why: undefined, retryAfterMs: undefined, details: undefined };
  const { why, retryAfterMs } = admission;
  return { ...step, why, retryAfterMs, details: gate.decisionDetails(ticket, now) };
}
