import type { Admission, Ticket } from './ticket.ts';
import type { Decision } from '../events/proxy-events.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';

/**
 * Observe mode: everything passes, and what would have been done is told.
 *
 * The gate decides as ever, with its own queues, tokens and shares. A ticket that it would have kept waiting stays in the
 * queue as the shadow of a request that has long been sent: served, it takes its token; late, it is turned away; nobody
 * hears of either. One that it would have refused takes no token. So what is told is what the same arrivals would have
 * met. It differs from enforcing by what clients would have made of it: a refused one might have come back later, a
 * retry would have asked again, and a refusal that the upstream would have been spared is one here.
 *
 * That last is why the limit is told of an overrun: what the upstream rejects while more is sent than the limit would
 * have let go was not caused by what it would have let go. See `AdaptiveRate.rejected` and `learn`.
 */
export function letPass(ticket: Ticket, decided: Admission | undefined, now: Millis): Admission {
  const wouldHave = judge(decided);
  if (wouldHave.decision !== 'passed') for (const limit of ticket.limits) limit.overrunAt = now;
  return { kind: 'admitted', wouldHave };
}

function judge(decided: Admission | undefined): Decision {
  if (decided?.kind === 'refused') return { decision: 'refused', why: decided.why };
  return decided === undefined ? QUEUED : PASSED;
}

const PASSED: Decision = { decision: 'passed', why: undefined };
const QUEUED: Decision = { decision: 'queued', why: undefined };
