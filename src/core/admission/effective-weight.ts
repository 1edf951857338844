import { promisedReturn } from '../limits/client-return.ts';
import type { GateStore } from './gate-store.ts';
import type { Limit } from '../limits/limit.ts';
import type { Ticket } from './ticket.ts';
import type { Millis } from '../scalars.ts';

/**
 * Returns a ticket's weight at a limit, > 0: its class weight, divided among the processes in which the client, or another one of
 * its address, waits for that limit, and scaled by the client's allowance. The clients of an address have its turns together, which
 * `weightInAddress` divides among them.
 * Stores the ticket's other weights: `wholeWeight`, and `weight`, which is its client's part of the class weight at the outermost limit.
 * @param limit by default the one in whose queue it waits
 */
export function computeEffectiveWeight(
  store: GateStore,
  ticket: Ticket,
  now: Millis,
  limit: Limit | undefined = ticket.limits.at(-1),
): number {
  const { classWeight, clientSlot, limits } = ticket;
  ticket.weight = shareAt(limits[0], ticket) * classWeight * partOfAddress(store, ticket, now);
  ticket.wholeWeight = clientSlot === undefined ? classWeight : classWeight * store.clients.allowance(clientSlot, now);
  return shareAt(limit, ticket) * ticket.wholeWeight;
}

/**
 * Returns what a weight of `computeEffectiveWeight` counts among the clients of its address: divided among the processes in which
 * the client itself waits for the limit. The turns of the address are already divided among the processes in which it waits.
 * @param limit by default the one in whose queue it waits
 */
export function weightInAddress(
  weight: number,
  { client, fairnessKey, limits }: Ticket,
  limit: Limit | undefined = limits.at(-1),
): number {
  return client === fairnessKey ? weight : weight * (limit?.demand?.waitingShare(client) ?? 1);
}

/** Converts a weight at one limit to that at another one: the client, or its address, may wait in other processes there. */
export function convertWeight(weight: number, ticket: Ticket, from: Limit | undefined, to: Limit): number {
  return from === to ? weight : (weight * shareAt(to, ticket)) / shareAt(from, ticket);
}

/** The part of the weight of its client, or of its address, that counts here. */
function shareAt(limit: Limit | undefined, { fairnessKey }: Ticket): number {
  return limit?.demand?.waitingShare(fairnessKey) ?? 1;
}

/**
 * The client of a refused request counts as demand of its limits until `until`, unless another of its requests waits. Only a
 * client that is likely to return counts: not one that asks for the first time, or before the time of its last Retry-After.
 */
export function awaitReturn(store: GateStore, ticket: Ticket, until: Millis, now: Millis): void {
  const { clientSlot, fairnessKey, isReturning, limits } = ticket;
  if (clientSlot === undefined || store.clients.previousArrival(clientSlot) === Number.NEGATIVE_INFINITY) return;
  if (!isReturning && promisedReturn(store, ticket, clientSlot).last > now) return;
  computeEffectiveWeight(store, ticket, now);
  for (const { demand } of limits) demand?.awaitReturn(fairnessKey, ticket.wholeWeight, until, now);
}

/** The part of the turns of its address that a client has, by the clients that are active or have waiting requests; in (0, 1]. */
export function partOfAddress(store: GateStore, { addressGroup, upstream }: Ticket, now: Millis): number {
  if (addressGroup === undefined) return 1;
  const { addressGroups, queueOccupancy } = store.upstream(upstream);
  return 1 / Math.max(addressGroups.activeClients(addressGroup, now), queueOccupancy.clientCount(addressGroup));
}
