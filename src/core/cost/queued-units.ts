import type { ClientStore } from '../admission/client-allowance.ts';
import { weightInAddress } from '../admission/effective-weight.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Limit } from '../limits/limit.ts';
import type { Meter } from '../limits/meter.ts';
import { largestCharge } from '../rate/pacer.ts';
import type { Millis } from '../scalars.ts';

/** A request counts at least this part of the mean, or of one unit if that is more: else free ones would be served before all others. */
const MIN_RELATIVE_COST = 0.01;

/** The units that a request counts in the order of service at a limit as it is served: its charge, as far as the pacer charges it. */
export function countTurn(limit: Limit, ticket: Ticket, now: Millis): number {
  const cost = ticket.costAt(limit);
  if (cost !== undefined) cost.countedAt = limit.queue.forgivenCount;
  return ticket.costs === undefined ? 1 : countUnits(limit.meter, cost?.charged ?? 1, now);
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
 * them. Does nothing while no request waits and none has to: then nobody has had less because of it. Nor is anything given back of a
 * charge that delayed no turn of the client, or no longer does: that would put the client ahead of others.
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
  const cost = ticket.costAt(limit);
  if (units < 0 && cost?.countedAt !== limit.queue.forgivenCount) return;
  if (cost !== undefined) cost.countedAt = limit.queue.forgivenCount;
  const { addressGroup: group, fairnessKey, wholeWeight: weight } = ticket;
  const largest = largestCharge(limit.meter.rate(now));
  const slot = clients.visit(ticket.client, now, ticket.upstream); // its exchange may be over
  const memberWeight = weightInAddress(weight, ticket);
  limit.queue.settle({ key: slot, weight, group, memberWeight, units, largest });
  clients.leave(slot);
  if (limit.nestedWithWaiters !== undefined) limit.scheduler.settle(fairnessKey, weight, units, largest);
}
