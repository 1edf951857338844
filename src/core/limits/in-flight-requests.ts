import { NO_LIMITS, type Ticket } from '../admission/ticket.ts';
import type { Millis } from '../scalars.ts';
import { releasePlaces, releasePlacesOnResponse } from './limit-places.ts';

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
}
