import type { GateDecision } from './gate-decision.ts';
import type { AdmissionResult } from './ticket.ts';

const PASSED: GateDecision = { decision: 'passed', why: undefined };
const QUEUED: GateDecision = { decision: 'queued', why: undefined };

/** The gate's decision about a request; in observe mode, the decision that would have been enforced. Undefined: it is queued. */
export function toGateDecision(admission: AdmissionResult | undefined): GateDecision {
  if (admission === undefined) return QUEUED;
  if (admission.kind === 'admitted') return admission.wouldHave ?? PASSED;
  return { decision: 'refused', why: admission.why };
}
