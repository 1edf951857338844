import type { GateStore } from './gate-store.ts';
import type { Ticket } from './ticket.ts';
import type { Millis } from '../scalars.ts';

/**
 * Returns a ticket's weight in the queue, > 0: its part of the class weight, scaled by the client's allowance. The class
 * weight is divided among the clients of an address, and among the processes in which the client waits. Stores the part
 * before scaling in `ticket.weight`.
 */
export function computeEffectiveWeight(store: GateStore, ticket: Ticket, now: Millis): number {
  const { addressGroup, clientSlot, classWeight } = ticket;
  const sharers = addressGroup === undefined ? 1 : countAddressClients(store, ticket.upstream, addressGroup, now);
  const localShare = ticket.limits.at(-1)?.localShares?.get(ticket.client) ?? 1;
  ticket.weight = (localShare * classWeight) / sharers;
  return clientSlot === undefined ? ticket.weight : ticket.weight * store.clients.allowance(clientSlot, now);
}

/** Clients of one address that are active or have waiting requests. */
function countAddressClients(store: GateStore, upstream: string, addressGroup: string, now: Millis): number {
  const { addressGroups, queueOccupancy } = store.upstream(upstream);
  return Math.max(addressGroups.activeClients(addressGroup, now), queueOccupancy.clientCount(addressGroup));
}
