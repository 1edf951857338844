import type { ClientStore } from '../admission/client-allowance.ts';
import { weightInAddress } from '../admission/effective-weight.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Limit } from '../limits/limit.ts';
import type { Meter } from '../limits/meter.ts';
import { largestCharge } from '../rate/pacer.ts';
import type { Millis } from '../scalars.ts';

/** A request counts at least this part of the mean, or of one unit if that is more: else free ones would be served before all others. */
const MIN_RELATIVE_COST = 0.01;

/** The units that a request counts in the order of service at a limit: its charge, as far as the pacer charges it. */
export function queuedUnits(limit: Limit, ticket: Ticket, now: Millis): number {
  if (ticket.costs === undefined) return 1;
  return countUnits(limit.meter, ticket.costAt(limit)?.charged ?? 1, now);
}

function countUnits(meter: Meter, units: number, now: Millis): number {
  const least = MIN_RELATIVE_COST * Math.max(1, meter.meanCost ?? 1);
  return Math.min(Math.max(units, least), largestCharge(meter.rate(now)));
}

/** What a request counted in the queues of its limit, and what it is to count there, in units. */
interface CountedUnits {
  readonly charged: number;
  readonly actual: number;
}

/**
 * Moves the next turn of a client by the units that its request has cost beyond what its turn counted, as far as the pacer charges
 * them. Does nothing while no request waits and none has to: then nobody has had less because of it.
 */
export function bookUnits(
  clients: Pick<ClientStore, 'visit' | 'leave'>,
  ticket: Ticket,
  limit: Limit,
  { charged, actual }: CountedUnits,
  now: Millis,
): void {
  const units = countUnits(limit.meter, actual, now) - countUnits(limit.meter, charged, now);
  if (units === 0 || (!limit.isAwaited && limit.meter.delay(now) <= 0)) return;
  const { addressGroup: group, fairnessKey, wholeWeight: weight } = ticket;
  const largest = largestCharge(limit.meter.rate(now));
  const slot = clients.visit(ticket.client, now, ticket.upstream); // its exchange may be over
  const memberWeight = weightInAddress(weight, ticket);
  limit.queue.settle({ key: slot, weight, group, memberWeight, units, largest });
  clients.leave(slot);
  if (limit.nestedWithWaiters !== undefined) limit.scheduler.settle(fairnessKey, weight, units, largest);
}
