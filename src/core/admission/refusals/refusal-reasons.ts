// Why a request is refused, and whether a block or a spent quota is the reason.

import type { Limit } from '../../limits/limit.ts';
import type { Millis } from '../../scalars.ts';
import type { RefusalReason } from '../gate-decision.ts';
import { attributesFor, type Ticket } from '../ticket.ts';

/** The refusal reason of a request that would have to wait longer than it may. */
export function refusalForLongWait(ticket: Ticket, now: Millis): RefusalReason {
  return refusalIfStopped(ticket, now) ?? (hasFiniteRate(ticket, now) ? 'over_share' : 'queue_timeout');
}

/** Whether one of its limits, or of its quotas, has a finite rate. Only then there is a rate to share. */
export function hasFiniteRate(ticket: Ticket, now: Millis): boolean {
  const { limits, quotas } = ticket;
  if (limits.some(({ meter }) => meter.rate(now) < Number.POSITIVE_INFINITY)) return true;
  return quotas !== undefined && quotas.rate(ticket, now) < Number.POSITIVE_INFINITY;
}

/** Whether a quota is used up until after the end of its wait. */
export function isSpentTooLong(ticket: Ticket, now: Millis): boolean {
  return ticket.quotas !== undefined && now + ticket.quotas.untilReset(ticket, now) > ticket.expiresAt;
}

/** As `refusalIfBlocked`; `quota_exceeded` if a quota is used up. */
export function refusalIfStopped(ticket: Ticket, now: Millis): RefusalReason | undefined {
  const { quotas } = ticket;
  return quotas !== undefined && quotas.untilReset(ticket, now) > 0 ? 'quota_exceeded' : refusalIfBlocked(ticket, now);
}

/** How long a probe is left to bodies that have been read: shorter than to others by senders that have failed (`turnDeferral`). */
const PROBE_BODY_WAIT: Millis = 1000;

/** Whether the ticket would be the probe of a blocked limit although its body has not been read. */
export function isUnfitProbe(ticket: Ticket, now: Millis): boolean {
  if (ticket.isBodyReceived) return false;
  return ticket.limits.some((limit) => {
    const { meter } = limit;
    if (meter.hasBlock !== true && meter.phase !== 'blocked') return false;
    const overdueFor = meter.probeOverdueFor(now, attributesFor(meter, ticket));
    return overdueFor < PROBE_BODY_WAIT && isBlockedAt(limit, ticket, now);
  });
}

/** Whether a block or a stop at this limit holds back the ticket. */
export function isBlockedAt(limit: Limit, ticket: Ticket, now: Millis): boolean {
  const { meter } = limit;
  return meter.hasBlock === true ? meter.isHeldBack?.(now, ticket.attributes) === true : limit.isBlocked(now);
}

/** Returns `blocked` for a block at a shared limit, of an account or by an operator, and `held` for one at a limit of this client alone. */
export function refusalIfBlocked(ticket: Ticket, now: Millis): RefusalReason | undefined {
  const limit = ticket.limits.find((each) => isBlockedAt(each, ticket, now));
  if (limit === undefined) return undefined;
  const isShared = limit.ref.scope === 'upstream' || (ticket.account !== undefined && limit.ref.scope === 'credential');
  return isShared || limit.isBlockedByOperator ? 'blocked' : 'held';
}
