import { sourceAt } from './wait-estimate.ts';
import type { Room } from './connection-slots.ts';
import type { Ticket } from './ticket.ts';
import { NO_LIMITS } from './ticket.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';

/**
 * Takes a token of each of its limits.
 * @param due when they were to be taken, where a timer was late; else now
 */
export function takeTokens(ticket: Ticket, due: Millis, now: Millis): void {
  ticket.admitted = ticket.limits;
  for (const limit of ticket.limits) {
    const { meter } = limit;
    if (meter.take(now, due, sourceAt(meter, ticket))) ticket.probes = [...ticket.probes, limit];
  }
}

/** Takes a place among the connections. */
export function takeRoom(ticket: Ticket, room: Room, now: Millis): void {
  room.hold(now);
  ticket.room = room;
}

/** It is sent, or over: what it held while it was only admitted, others may have. */
export function giveBack(ticket: Ticket): void {
  for (const limit of ticket.admitted) limit.meter.giveBack();
  ticket.admitted = NO_LIMITS;
  ticket.room?.giveBack();
  ticket.room = undefined;
}

/** As `giveBack`, of one that will not be sent: another may be the probe. */
export function abandon(ticket: Ticket): void {
  giveBack(ticket);
  for (const limit of ticket.probes) limit.meter.abandonProbe();
  ticket.probes = NO_LIMITS;
}
