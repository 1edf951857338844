import type { GateStore } from './gate-store.ts';
import type { Ticket } from './ticket.ts';
import type { Millis } from '../scalars.ts';

/**
 * Returns a ticket's weight in the queue, > 0: its class weight, divided among the processes in which the client waits, and scaled
 * by the client's allowance. The clients of an address have its turns together. Stores in `ticket.weight` the client's part of the
 * class weight, divided among them, before scaling.
 */
export function computeEffectiveWeight(store: GateStore, ticket: Ticket, now: Millis): number {
  const { addressGroup, clientSlot, classWeight } = ticket;
  const sharers = addressGroup === undefined ? 1 : countAddressClients(store, ticket.upstream, addressGroup, now);
  const localShare = ticket.limits.at(-1)?.localShares?.get(ticket.client) ?? 1;
  const weight = localShare * classWeight;
  ticket.weight = weight / sharers;
  return clientSlot === undefined ? weight : weight * store.clients.allowance(clientSlot, now);
}

/**
 * The client of a refused request counts as demand of its limits until `until`, unless another of its requests waits. Only a
 * client that is likely to return counts: not one that asks for the first time, or before the time of its last Retry-After.
 */
export function awaitReturn(store: GateStore, ticket: Ticket, until: Millis, now: Millis): void {
  const { clientSlot, fairnessKey, isReturning, limits, upstream } = ticket;
  if (clientSlot === undefined || store.clients.previousArrival(clientSlot) === Number.NEGATIVE_INFINITY) return;
  if (!isReturning && store.clients.promisedReturn(clientSlot) > now) return;
  for (const { awaitedReturns } of limits) {
    if (awaitedReturns === undefined || store.upstream(upstream).queueOccupancy.clientCount(fairnessKey) > 0) continue;
    awaitedReturns.add(fairnessKey, computeEffectiveWeight(store, ticket, now), until, now);
  }
}

/** Clients of one address that are active or have waiting requests. */
function countAddressClients(store: GateStore, upstream: string, addressGroup: string, now: Millis): number {
  const { addressGroups, queueOccupancy } = store.upstream(upstream);
  return Math.max(addressGroups.activeClients(addressGroup, now), queueOccupancy.clientCount(addressGroup));
}
