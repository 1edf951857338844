/**
 * Whom a quota is applied to that an answer tells at a limit: all who use the limit, where they are one to the upstream as far as
 * is known; else who was answered, as a 429 with Retry-After holds its client.
 */
import type { Limit } from '../limits/limit.ts';
import { stopOf } from './quota-pacing.ts';
import type { QuotaOwner, Requester } from './requester.ts';
import { ANYBODY, differ, keyOfRequester } from './requester.ts';
import type { Store } from '../admission/gate-store.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Millis, Quota } from '../exchange/attempt-outcome.ts';

/** So many of those who wait are looked at, the first of each client. */
const LOOKED_AT = 1000;

/**
 * Applies what an answer told, to everybody at the limit or to who was answered. Returns whether it turned out that a quota does not
 * hold all who wait there.
 */
export function applyQuota(
  store: Store,
  limit: Limit,
  ticket: Ticket,
  quota: Quota,
  status: number,
  now: Millis,
): boolean {
  const { meter } = limit;
  const { sentAt } = ticket;
  // Who was not recognised was counted as somebody else.
  const isNobodys = limit.ref.scope !== 'credential' && (status === 401 || status === 407);
  const before = meter.quotaOwner(now);
  if (!isNobodys && meter.noteQuota(quota, sentAt, now, requesterAt(limit, ticket))) {
    return before === undefined && meter.isQuotaInForce(now) && releaseOthers(store, limit, now);
  }
  const isReleased = before !== undefined && !meter.isQuotaInForce(now);
  if (isReleased) holdOwner(store, limit, before, ticket, now);
  const { resetIn, remaining, told = remaining } = quota;
  if (told > 0 || resetIn === undefined || resetIn === 0) return isReleased;
  const until = stopOf(quota, resetIn, sentAt, now);
  if (until > now) store.holdAt(limit, keyOfRequester(ticket.requester), until, now);
  return isReleased;
}

/**
 * Where a quota is in force that is not about who arrives, it is no longer in force for the limit, and goes on holding whom it is
 * about. Returns whether that was so.
 */
export function releaseFor(store: Store, limit: Limit, ticket: Ticket, now: Millis): boolean {
  const { meter } = limit;
  if (limit.isOurs || limit.ref.scope === 'credential' || !meter.isQuotaInForce(now)) return false;
  const requester = requesterAt(limit, ticket);
  const isOfSome = coversSomeOnly(store, limit, now);
  if (!isOfSome && meter.isQuotaOf(requester)) return false;
  const owner = meter.quotaOwner(now);
  if (owner === undefined) return false;
  // Of a client that authenticates alike it is not known yet: its own answer will tell.
  meter.disownQuota(isOfSome || differ(owner.credential, requester.credential), now);
  holdOwner(store, limit, owner, ticket, now);
  return true;
}

/** Whether other clients than the one that was told last succeed without a quota: then it covers some requests only, say of one path. */
function coversSomeOnly(store: Store, { ref, meter }: Limit, now: Millis): boolean {
  if (ref.nested !== '' || ref.scope !== 'upstream') return false;
  const { untold } = store.upstream(ref.upstream);
  if (!untold.areRecent(now)) return false;
  const told = meter.quotaOwner(now)?.client;
  return told !== undefined && untold.areOfOthers(told, now);
}

/** @param ticket of another requester; where the limit is of one client, of the same client */
function holdOwner(store: Store, limit: Limit, owner: QuotaOwner, ticket: Ticket, now: Millis): void {
  const { credential, client = ticket.requester.client, until, isSpent } = owner;
  if (isSpent && until > now) store.holdAt(limit, keyOfRequester({ credential, client }), until, now);
}

/** As `releaseFor`, of those who wait already. */
export function releaseOthers(store: Store, limit: Limit, now: Millis): boolean {
  let looks = 0;
  for (const line of limit.queuedWithin === undefined ? [limit] : [limit, ...limit.queuedWithin]) {
    for (const { head } of line.queue.flows) {
      if (head !== undefined && releaseFor(store, limit, head, now)) return true;
      looks += 1;
      if (looks === LOOKED_AT) return false;
    }
  }
  return false;
}

/** Who is told apart at this limit: where the upstream counts credentials or clients, nothing else is known to matter. */
function requesterAt({ ref }: Limit, ticket: Ticket): Requester {
  if (ref.scope === 'credential') return ANYBODY;
  return ref.scope === 'client' ? { ...ticket.requester, client: undefined } : ticket.requester;
}
