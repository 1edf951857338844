import type { Millis } from '../scalars.ts';
import { releaseForTicket } from '../quota/apply-quota.ts';
import type { ClientSlot, ClientStore } from './client-allowance.ts';
import { recordReturn } from '../limits/client-return.ts';
import { computeEffectiveWeight } from './effective-weight.ts';
import type { GateStore, GateUpstream } from './gate-store.ts';
import type { Ticket } from './ticket.ts';
import { clientHeldUntil } from './wait-estimate.ts';
import type { WaitQueue } from './wait-queue.ts';

/** Counts the client as active and the request as demand. Its limits are known. Returns the client's slot. */
export function registerArrival(store: GateStore, ticket: Ticket, upstream: GateUpstream, now: Millis): ClientSlot {
  if (ticket.clientSlot !== undefined) return ticket.clientSlot; // a retry is no new demand
  const { clients } = store;
  const slot = clients.enter(ticket.client, now, ticket.upstream);
  const before = clients.previousArrival(slot);
  recordReturn(store, ticket, slot, now);
  const { addressGroup, isReturning } = ticket;
  if (addressGroup !== undefined) upstream.addressGroups.onArrival(addressGroup, now, before, isReturning);
  ticket.clientSlot = slot;
  computeEffectiveWeight(store, ticket, now);
  upstream.activeClients.onArrival(ticket.fairnessKey, now, before, ticket.weight, isReturning);
  return slot;
}

/** Releases quotas that hold back all requests but do not cover this one. */
export function releaseQuotas(store: GateStore, waitQueue: WaitQueue, ticket: Ticket, now: Millis): void {
  for (const limit of ticket.limits) {
    if (releaseForTicket(store, limit, ticket, now)) waitQueue.serveReadyWithin(limit, now);
  }
}

/** Whether the client of a ticket is held. */
export function isClientHeld(clients: ClientStore, ticket: Ticket, now: Millis): boolean {
  const { clientSlot } = ticket;
  return clientSlot !== undefined && clientHeldUntil(clients, ticket, clientSlot, now) > now;
}
