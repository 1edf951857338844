import type { CostSettlement } from '../cost/cost-settlement.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
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
    demand?.returns?.remove(ticket.fairnessKey);
    const isProbe = meter.take(now, due, attributesFor(meter, ticket), ticket.costAt(limit.ref));
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
export function abandonReservations(ticket: Ticket, now: Millis): void {
  if (ticket.costs !== undefined) giveBackCosts(ticket, now);
  releaseReservations(ticket);
  releasePlaces(ticket);
  for (const { meter } of ticket.probedLimits) meter.abandonProbe(attributesFor(meter, ticket));
  ticket.probedLimits = NO_LIMITS;
}

function giveBackCosts({ costs, reservedLimits }: Ticket, now: Millis): void {
  for (const { meter, ref } of reservedLimits) {
    const cost = costs?.find(ref.nested);
    if (cost === undefined) continue;
    meter.settle?.({ sentAt: now, charged: cost.charged, actual: 0, result: 'cancelled' }, now);
  }
}

/** Takes the tokens of a ticket that need not wait. A limit without waiting requests is idle: nobody is to be served before a client. */
export function takeTokensAtOnce(ticket: Ticket, now: Millis): void {
  if (ticket.costs !== undefined) {
    for (const limit of ticket.limits) if (!limit.isAwaited) limit.forgiveCosts();
  }
  takeTokens(ticket, now, now);
}

/** The quotas count an attempt from its send. */
export function countSend(ticket: Ticket, now: Millis): void {
  if (ticket.quotas !== undefined) ticket.countedQuotas = ticket.quotas.onSent(now);
}

/** The attempt has an outcome. If nothing was sent, the quotas no longer count it. */
export function settleCount(ticket: Ticket, outcome: AttemptOutcome, costs: CostSettlement, now: Millis): void {
  costs.settleOutcome(ticket, outcome, now);
  if (outcome.kind === 'error' && !outcome.sent) ticket.quotas?.giveBack(ticket.countedQuotas, ticket.sentAt);
  ticket.countedQuotas = NO_QUOTAS;
}
