/**
 * Applies a quota that a response reports: to all requests of the limit, if the upstream seems to count them together;
 * else to the requester alone, in the way a 429 with Retry-After holds its client.
 */
import type { Limit } from '../limits/limit.ts';
import { spentUntil } from './quota-pacing.ts';
import type { QuotaOwner, Requester } from './requester.ts';
import { QuotaReview } from './quota-review.ts';
import { ANY_REQUESTER, areKnownDifferent, requesterKey } from './requester.ts';
import type { GateStore } from '../admission/gate-store.ts';
import type { SendCounts } from '../cost/request-costs.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Millis } from '../scalars.ts';
import type { Quota } from '../hints/hints.ts';

/** The maximum number of waiting tickets that are checked at once. */
const MAX_TICKETS_CHECKED = 1000;

/** Applies a reported quota. Returns whether a quota turned out not to cover all tickets that wait at the limit. */
export function applyQuota(
  store: GateStore,
  limit: Limit,
  ticket: Ticket,
  quota: Quota,
  status: number,
  now: Millis,
): boolean {
  const { meter } = limit;
  const { sentAt } = ticket;
  // An unauthenticated request is counted under another identity.
  const isUnauthenticated = limit.ref.scope !== 'credential' && (status === 401 || status === 407);
  const before = meter.quotaOwner(now);
  if (!isUnauthenticated && meter.onQuota(quota, sentAt, now, requesterAt(limit, ticket))) {
    return before === undefined && meter.isQuotaInForce(now) && releaseQueued(store, limit, now);
  }
  const isReleased = before !== undefined && !meter.isQuotaInForce(now);
  if (isReleased) holdQuotaOwner(store, limit, before, ticket, now);
  const { resetIn, remaining, reportedRemaining = remaining } = quota;
  if (reportedRemaining > 0 || resetIn === undefined || resetIn === 0) return isReleased;
  const until = spentUntil(quota, resetIn, sentAt, now);
  if (until > now) store.holdClientAt(limit, requesterKey(ticket.requester), until, now);
  return isReleased;
}

/** Requests sent after this one have used some of what remains, where they are counted. */
export function quotaLeftNow(quota: Quota, { learnedMeter: meter }: Limit, counts: SendCounts | undefined): Quota {
  const { remaining } = quota;
  const sentSince = counts === undefined ? 0 : (meter.sentUnits ?? meter.sendCount) - counts.sentUnits;
  const left = Math.max(0, remaining - sentSince);
  return left === remaining ? quota : { ...quota, remaining: left, reportedRemaining: remaining };
}

/**
 * If the quota in force does not cover this ticket, drops it from the limit and holds only the requester it covers.
 * Returns whether it did so.
 */
export function releaseForTicket(store: GateStore, limit: Limit, ticket: Ticket, now: Millis): boolean {
  const { meter } = limit;
  if (coversAll(limit) || !meter.isQuotaInForce(now)) return false;
  const requester = requesterAt(limit, ticket);
  const isPartial = coversSomeOnly(store, limit, now);
  if (!isPartial && meter.quotaAppliesTo(requester)) return false;
  const owner = meter.quotaOwner(now);
  if (owner === undefined) return false;
  // Whether another client of the same credential has its own quota is unknown until its own response.
  meter.dropQuota(isPartial || areKnownDifferent(owner.credential, requester.credential), now);
  holdQuotaOwner(store, limit, owner, ticket, now);
  return true;
}

/** Whether other clients succeed without a reported quota. Then the quota covers only some requests, such as one path. */
function coversSomeOnly(store: GateStore, { ref, meter }: Limit, now: Millis): boolean {
  if (ref.nested !== '' || ref.scope !== 'upstream') return false;
  const { unmeteredSuccesses } = store.upstream(ref.upstream);
  if (!unmeteredSuccesses.hasRecent(now)) return false;
  const reportedClient = meter.quotaOwner(now)?.client;
  return reportedClient !== undefined && unmeteredSuccesses.hasRecentFromOthers(reportedClient, now);
}

/** @param ticket of another requester, or of the same client at a limit of one client */
function holdQuotaOwner(store: GateStore, limit: Limit, owner: QuotaOwner, ticket: Ticket, now: Millis): void {
  const { credential, client = ticket.requester.client, until, isSpent } = owner;
  if (isSpent && until > now) store.holdClientAt(limit, requesterKey({ credential, client }), until, now);
}

/**
 * As `releaseForTicket`, for the tickets that wait already: those of one address may be many, and none may hide others. If it
 * checks only a part of them, `limit.quotaReview` is set: `continueRelease` checks the next part.
 */
export function releaseQueued(store: GateStore, limit: Limit, now: Millis): boolean {
  if (coversAll(limit)) return false;
  if (limit.quotaReview === undefined) limit.quotaReview = new QuotaReview(limit);
  else limit.quotaReview.repeat();
  return continueRelease(store, limit, now);
}

/** Checks the next of the tickets that `releaseQueued` left. Returns whether it released the quota. */
export function continueRelease(store: GateStore, limit: Limit, now: Millis): boolean {
  const { quotaReview, meter } = limit;
  if (quotaReview === undefined) return false;
  let isReleased = false;
  for (let left = MAX_TICKETS_CHECKED; left > 0; left -= 1) {
    const ticket = meter.isQuotaInForce(now) ? quotaReview.next() : undefined;
    isReleased = ticket !== undefined && releaseForTicket(store, limit, ticket, now);
    if (ticket !== undefined && !isReleased) continue;
    limit.quotaReview = undefined;
    break;
  }
  return isReleased;
}

/** Whether a quota covers all requests of the limit: they have one credential, or the upstream does not know the limit. */
function coversAll({ isClassLimit, ref }: Limit): boolean {
  return isClassLimit || ref.scope === 'credential';
}

/** The requester, reduced to what may matter at this limit: a limit of a credential or client is counted by that. */
function requesterAt({ ref }: Limit, ticket: Ticket): Requester {
  if (ref.scope === 'credential') return ANY_REQUESTER;
  return ref.scope === 'client' ? { ...ticket.requester, client: undefined } : ticket.requester;
}
