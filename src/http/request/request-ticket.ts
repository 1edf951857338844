import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { numberOf } from '../../core/quota/requester.ts';
import type { Settle } from '../../core/admission/ticket.ts';
import { Ticket } from '../../core/admission/ticket.ts';
import type { Arrival } from './routed-request.ts';
import type { Hash } from './client-hash.ts';
import { credentialOf, limitsOf } from './match-limits.ts';
import { rewriteTarget } from './router.ts';

/** A request's standing at the gate. */
export function ticketOf(arrival: Arrival, hash: Hash, settle: Settle): Ticket {
  const ticket = new ArrivedTicket(arrival, hash, limitsOf(arrival, hash), settle);
  ticket.nest = arrival.client.nest;
  return ticket;
}

/** Its credential is hashed when somebody asks for it: of most requests nobody does. */
class ArrivedTicket extends Ticket {
  readonly #arrival: Arrival;
  readonly #hash: Hash;

  constructor(arrival: Arrival, hash: Hash, refs: readonly LimitRef[], settle: Settle) {
    const { client, route } = arrival;
    super(route.target.name, client.hash, client.weight, refs, settle);
    this.#arrival = arrival;
    this.#hash = hash;
  }

  protected override path(): string {
    const { request, route } = this.#arrival;
    return rewriteTarget(request.path, route);
  }

  protected override salt(): string {
    return this.#hash('path');
  }

  protected override credential(): number {
    return numberOf(credentialOf(this.#arrival, this.#hash));
  }
}
