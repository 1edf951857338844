import type { Decision } from '../events/proxy-events.ts';
import type { Gate } from '../admission/gate.ts';
import type { Admission, Ticket } from '../admission/ticket.ts';
import type { Millis } from './attempt-outcome.ts';
import type { Step } from './exchange-observer.ts';

/** The step that the gate's answer to an arrival is; undefined where it simply passed, or would have. */
export function tellDecision(
  gate: Pick<Gate, 'grounds'>,
  ticket: Ticket,
  admission: Admission | undefined,
  now: Millis,
): Step | undefined {
  const { decision, why } = judge(admission);
  if (decision === 'passed') return undefined;
  return {
    what: 'decided',
    at: now,
    decision,
    why,
    retryAfter: admission?.kind === 'refused' ? admission.retryAfter : undefined,
    isObserved: admission?.kind === 'admitted',
    grounds: gate.grounds(ticket, now),
  };
}

/** The step that the end of its wait is. */
export function tellDequeued(
  gate: Pick<Gate, 'grounds'>,
  ticket: Ticket,
  admission: Admission,
  waited: Millis,
  now: Millis,
): Step {
  const step = { what: 'dequeued', at: now, waited } as const;
  if (admission.kind === 'admitted') return { ...step, why: undefined, retryAfter: undefined, grounds: undefined };
  const { why, retryAfter } = admission;
  return { ...step, why, retryAfter, grounds: gate.grounds(ticket, now) };
}

function judge(admission: Admission | undefined): Decision {
  if (admission === undefined) return QUEUED;
  if (admission.kind === 'admitted') return admission.wouldHave ?? PASSED;
  return { decision: 'refused', why: admission.why };
}

const PASSED: Decision = { decision: 'passed', why: undefined };
const QUEUED: Decision = { decision: 'queued', why: undefined };
