import { bookUnits } from '../cost/queued-units.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import { isThrottled } from '../exchange/attempt-outcome.ts';
import type { Limit } from '../limits/limit.ts';
import type { CostResult } from '../rate/failed-send.ts';
import type { ClientStore } from './client-allowance.ts';
import type { ConnectionSlots } from './connection-slots.ts';
import { releasePlaces } from '../limits/limit-places.ts';
import { attributesFor, NO_LIMITS, NO_QUOTAS, type Ticket } from './ticket.ts';
import type { Millis } from '../scalars.ts';

/**
 * Takes a token of each limit of the ticket, and reserves a part of each quota.
 * @param due when the tokens were due, if a timer fired late; else now
 */
export function takeTokens(ticket: Ticket, due: Millis, now: Millis): void {
  ticket.reservedLimits = ticket.limits;
  if (ticket.quotas !== undefined) ticket.reservedQuotas = ticket.quotas.reserve(ticket, due, now);
  for (const limit of ticket.limits) {
    const { demand, meter, places } = limit;
    const cost = ticket.costAt(limit);
    if (cost !== undefined) cost.isPaced = true;
    demand?.returns?.remove(ticket.fairnessKey);
    const isProbe = meter.take(now, due, attributesFor(meter, ticket), cost?.charged);
    if (isProbe) ticket.probedLimits = [...ticket.probedLimits, limit];
    if (places === undefined || meter.concurrencyLimit === undefined) continue;
    places.hold(ticket.fairnessKey, now);
    ticket.heldPlaces = [...ticket.heldPlaces, places];
  }
}

export function reserveConnection(ticket: Ticket, slots: ConnectionSlots, now: Millis): void {
  slots.reserve(ticket.fairnessKey, now);
  ticket.reservedSlots = slots;
}

/** Releases the reservations once the request is sent or abandoned. */
export function releaseReservations(ticket: Ticket): void {
  for (const limit of ticket.reservedLimits) limit.meter.release();
  ticket.reservedLimits = NO_LIMITS;
  if (ticket.reservedQuotas !== NO_QUOTAS) {
    for (const quota of ticket.reservedQuotas) quota.release();
    ticket.reservedQuotas = NO_QUOTAS;
  }
  ticket.reservedSlots?.release(ticket.fairnessKey);
  ticket.reservedSlots = undefined;
}

/** Releases what a request still holds when its exchange is over, in observe mode; its places no later than its response ends. */
export function endReservations(ticket: Ticket): void {
  releaseReservations(ticket);
  if (ticket.inFlightLimits.length === 0) releasePlaces(ticket);
}

/** As `releaseReservations`, for a request that will not be sent: another one may be the probe. Charges are given back. */
export function abandonReservations(ticket: Ticket, clients: ClientStore, now: Millis): void {
  if (ticket.costs !== undefined) giveBackCosts(ticket, clients, ticket.reservedLimits, 'cancelled', now);
  releaseReservations(ticket);
  releasePlaces(ticket);
  for (const { meter } of ticket.probedLimits) meter.abandonProbe(attributesFor(meter, ticket));
  ticket.probedLimits = NO_LIMITS;
}

/** Gives back charges. Of the turn that the client has had, one unit stays, as of a request without a cost. */
function giveBackCosts(
  ticket: Ticket,
  clients: ClientStore,
  limits: readonly Limit[],
  result: Exclude<CostResult, 'read'>,
  now: Millis,
): void {
  const { sentAt } = ticket;
  for (const limit of limits) {
    const cost = ticket.costAt(limit);
    if (cost?.isPaced !== true) continue;
    const { charged } = cost;
    cost.isPaced = false;
    limit.meter.settle?.({ charged, actual: 0, result }, now);
    if (result === 'unsent') limit.meter.onCostKnown?.({ sentAt, counted: cost.counted, actual: undefined });
    if (limit === ticket.limits.at(-1)) {
      bookUnits(clients, ticket, limit, { charged, actual: Math.min(1, charged) }, now);
    }
  }
}

/**
 * Takes the tokens of a ticket that need not wait. A limit without waiting requests is idle: earlier costs are paid for, and delay no
 * turn. This cost delays the next turn of its client, as that of a queued request.
 */
export function takeTokensAtOnce(ticket: Ticket, clients: ClientStore, now: Millis): void {
  if (ticket.costs === undefined) {
    for (const limit of ticket.limits) if (!limit.isAwaited) limit.queue.forgiveCosts();
    return takeTokens(ticket, now, now);
  }
  for (const limit of ticket.limits) if (!limit.isAwaited) limit.forgiveCosts();
  ticket.costs.onAsked();
  takeTokens(ticket, now, now);
  const innermost = ticket.limits.at(-1);
  if (innermost === undefined) return;
  bookUnits(clients, ticket, innermost, { charged: 1, actual: ticket.costAt(innermost)?.charged ?? 1 }, now);
}

/** The quotas count an attempt from its send; those of the client, the first one. */
export function countSend(ticket: Ticket, now: Millis): void {
  ticket.clientQuota?.onSent(now);
  if (ticket.quotas !== undefined) ticket.countedQuotas = ticket.quotas.onSent(now);
}

/** The attempt has an outcome. If nothing was sent, its charges are given back, and the quotas no longer count it. A rejection names no cost. */
export function settleCount(ticket: Ticket, clients: ClientStore, outcome: AttemptOutcome, now: Millis): void {
  const { costs, limits, countedQuotas, sentAt } = ticket;
  const isUnsent = outcome.kind === 'error' && !outcome.sent;
  ticket.clientQuota?.settle(isUnsent);
  if (costs !== undefined && isUnsent) giveBackCosts(ticket, clients, limits, 'unsent', now);
  if (outcome.kind === 'error' || isThrottled(outcome.status, outcome.hints)) costs?.close();
  if (isUnsent) ticket.quotas?.giveBack(countedQuotas, sentAt);
  ticket.countedQuotas = NO_QUOTAS;
}
