import type { Store } from './store.ts';
import type { Ticket } from './ticket.ts';
import type { Millis } from './types.ts';

/** What a ticket weighs in the queue now, above 0: its part of its class's weight, scaled by its client's allowance. */
export function weigh(store: Store, ticket: Ticket, now: Millis): number {
  const { nest, slot, classWeight } = ticket;
  const sharers = nest === undefined ? 1 : store.upstream(ticket.upstream).nests.clients(nest, now);
  ticket.weight = classWeight / sharers;
  return slot === undefined ? ticket.weight : ticket.weight * store.clients.allowance(slot, now);
}
