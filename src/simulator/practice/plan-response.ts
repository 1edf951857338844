import type { Millis, Random } from '../../core/scalars.ts';
import type { HintStyle } from '../../config/schema/hint-styles.ts';
import type { UpstreamDecision } from '../upstream/upstream-model.ts';
import type { ResponsePlan, ResponseEnding } from './response-plan.ts';
import { respondWith } from './response-plan.ts';
import { hintHeaders } from './hint-headers.ts';
import type { AfterCharge } from './practice-spec.ts';

const SERVED_PLAN: ResponsePlan = { delay: 0, runsHandler: true, ending: respondWith(200) };
const RESET_PLAN: ResponsePlan = { delay: 0, runsHandler: false, ending: { kind: 'reset' } };
const UNAVAILABLE_PLAN: ResponsePlan = { delay: 0, runsHandler: false, ending: respondWith(503) };

const REASON_HEADER = 'Stripe-Rate-Limited-Reason';

/** Translates a decision of the upstream model into a response. @param reasonHeader carries the reason of a rejection */
export function planResponse(
  decision: UpstreamDecision,
  style: HintStyle,
  epochMs: Millis,
  reasonHeader = REASON_HEADER,
): ResponsePlan {
  if (decision.kind === 'down') return decision.how === '503' ? UNAVAILABLE_PLAN : RESET_PLAN;
  const { latency: delay, quota } = decision;
  const headers = hintHeaders(style, decision.kind === 'throttle' ? decision.retryAfterMs : undefined, quota, epochMs);
  switch (decision.kind) {
    case 'serve':
      if (delay === 0 && headers.length === 0) return SERVED_PLAN;
      return { delay, runsHandler: true, ending: respondWith(200, headers) };
    case 'fail':
      return { delay, runsHandler: false, ending: respondWith(decision.status, headers) };
    case 'throttle':
      return {
        delay,
        runsHandler: false,
        ending: respondWith(429, decision.reason === undefined ? headers : [...headers, reasonHeader, decision.reason]),
      };
  }
}

/** Makes the response to a charge fail at random, after the charge was made. */
export function injectChargeFault(plan: ResponsePlan, chances: AfterCharge, random: Random): ResponsePlan {
  const { reset = 0, hang = 0, error = 0 } = chances;
  const u = random();
  const ending: ResponseEnding | undefined =
    u < reset
      ? { kind: 'reset' }
      : u < reset + hang
        ? { kind: 'hang' }
        : u < reset + hang + error
          ? respondWith(500)
          : undefined;
  return ending === undefined ? plan : { ...plan, ending };
}
