import { countSend, releaseReservations } from '../admission/reservations.ts';
import { NO_LIMITS, type Ticket } from '../admission/ticket.ts';
import { largestSample } from '../rate/rate-state.ts';
import type { Millis } from '../scalars.ts';
import { releasePlaces, releasePlacesOnResponse } from './limit-places.ts';

/** The attempt is being sent. */
export function recordSent(ticket: Ticket, now: Millis): void {
  ticket.sentAt = now;
  releaseReservations(ticket);
  countSend(ticket, now);
  ticket.inFlightLimits = ticket.limits;
  ticket.isUnanswered = true;
  if (ticket.account !== undefined) {
    ticket.inFlightAccount = ticket.account;
    ticket.sentWith = ticket.account.name;
    ticket.sentCredential = ticket.account.credential;
    ticket.account.inFlight += 1;
    if (ticket.accountUse !== undefined) ticket.account.onUseSent(ticket.accountUse, now);
    ticket.accountUse = undefined;
  }
  ticket.costs?.onSent(ticket.limitRefs);
  ticket.countedLimit = undefined;
  for (const limit of ticket.limits) {
    const { meter, learnedMeter } = limit;
    const cost = ticket.costAt(limit);
    const inFlightAtSend = meter.onSent(now, cost?.charged, cost?.rule.expected, cost?.isOpen);
    if (limit.isClassLimit) continue;
    if (cost === undefined) ticket.countedLimit = limit;
    else cost.counted = Math.min(cost.charged, largestSample(meter.meanCost ?? 1));
    const counts = cost ?? ticket;
    counts.inFlightAtSend = inFlightAtSend;
    counts.sentUnits = learnedMeter.sentUnits ?? learnedMeter.sendCount;
  }
}

/** The attempt has its response, or will get none. */
export function recordResponse(ticket: Ticket, now: Millis): void {
  if (!ticket.isUnanswered) return;
  ticket.isUnanswered = false;
  releasePlacesOnResponse(ticket, now);
  for (const { meter } of ticket.inFlightLimits) meter.onResponse(now);
}

/** The attempt is over, with a response or without one. The caller reports that to the limits at which it was in flight. */
export function recordAttemptEnd(ticket: Ticket, now: Millis): void {
  recordResponse(ticket, now);
  releasePlaces(ticket, now - ticket.sentAt);
  ticket.inFlightLimits = NO_LIMITS;
  if (ticket.inFlightAccount === undefined) return;
  ticket.inFlightAccount.inFlight -= 1;
  ticket.inFlightAccount = undefined;
}
