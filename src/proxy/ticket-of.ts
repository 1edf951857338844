import type { Settle } from '../policy/ticket.ts';
import { Ticket } from '../policy/ticket.ts';
import type { Arrival } from './arrival.ts';
import type { Hash } from './client-hash.ts';
import { limitsOf } from './limits-of.ts';

/** A request's standing at the gate. */
export function ticketOf(arrival: Arrival, hash: Hash, settle: Settle): Ticket {
  const { route, client } = arrival;
  const ticket = new Ticket(route.target.name, client.hash, client.weight, limitsOf(arrival, hash), settle);
  ticket.nest = client.nest;
  return ticket;
}
