import type { Store } from './gate-store.ts';
import type { Ticket } from './ticket.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';

/**
 * What a ticket weighs in the queue now, above 0: its part of its class's weight (divided among the keys of one address,
 * and among the processes that its client waits at), scaled by its client's allowance.
 */
export function weigh(store: Store, ticket: Ticket, now: Millis): number {
  const { nest, slot, classWeight } = ticket;
  const sharers = nest === undefined ? 1 : countSharers(store, ticket.upstream, nest, now);
  const part = ticket.limits.at(-1)?.parts?.get(ticket.client) ?? 1;
  ticket.weight = (part * classWeight) / sharers;
  return slot === undefined ? ticket.weight : ticket.weight * store.clients.allowance(slot, now);
}

/** Keys of one address that ask now, or still wait for what they asked for. */
function countSharers(store: Store, upstream: string, nest: string, now: Millis): number {
  const { nests, backlog } = store.upstream(upstream);
  return Math.max(nests.clients(nest, now), backlog.clientsOf(nest));
}
