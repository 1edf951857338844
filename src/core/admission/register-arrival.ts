import type { Millis } from '../scalars.ts';
import { releaseForTicket } from '../quota/apply-quota.ts';
import type { ClientSlot } from './client-allowance.ts';
import { isOnTime } from './compute-retry-after.ts';
import { computeEffectiveWeight } from './effective-weight.ts';
import type { GateStore, GateUpstream } from './gate-store.ts';
import type { Ticket } from './ticket.ts';
import type { WaitQueue } from './wait-queue.ts';

/** Counts the client as active and the request as demand. Returns the client's slot. */
export function registerArrival(store: GateStore, ticket: Ticket, upstream: GateUpstream, now: Millis): ClientSlot {
  if (ticket.clientSlot !== undefined) return ticket.clientSlot; // a retry is no new demand
  const { clients } = store;
  const slot = clients.enter(ticket.client, now, ticket.upstream);
  const before = clients.previousArrival(slot);
  const isReturn = isOnTime(clients, slot, now);
  if (ticket.addressGroup !== undefined) upstream.addressGroups.onArrival(ticket.addressGroup, now, before, isReturn);
  ticket.clientSlot = slot;
  computeEffectiveWeight(store, ticket, now);
  upstream.activeClients.onArrival(now, before, ticket.weight, isReturn);
  return slot;
}

/** Releases quotas that hold back all requests but do not cover this one. */
export function releaseQuotas(store: GateStore, waitQueue: WaitQueue, ticket: Ticket, now: Millis): void {
  for (const limit of ticket.limits) {
    if (releaseForTicket(store, limit, ticket, now)) waitQueue.serveReadyWithin(limit, now);
  }
}
