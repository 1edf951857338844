import type { Limit } from '../limits/limit.ts';
import type { Ticket } from '../admission/ticket.ts';

/**
 * The tickets that wait at a limit, in the order in which their clients began to wait, for a check that is made in parts. Tickets
 * come and go between the parts. Those that come after the start may be left out.
 */
export class QuotaReview {
  readonly #limit: Limit;
  #tickets: Iterator<Ticket, undefined>;
  #isRepeated = false;

  constructor(limit: Limit) {
    this.#limit = limit;
    this.#tickets = waitingTickets(limit);
  }

  /** Has all tickets checked after this call, also those that were checked before. It first goes on to the end. */
  repeat(): void {
    this.#isRepeated = true;
  }

  /** Undefined at the end. */
  next(): Ticket | undefined {
    const ticket = this.#tickets.next().value;
    if (ticket !== undefined || !this.#isRepeated) return ticket;
    this.#isRepeated = false;
    this.#tickets = waitingTickets(this.#limit);
    return this.#tickets.next().value;
  }
}

/** The tickets that wait at a limit, or at limits nested in it. */
export function* waitingTickets(limit: Limit): Generator<Ticket, undefined> {
  for (const { queue } of [limit, ...(limit.nestedWithWaiters ?? [])]) {
    for (const flow of queue.flowsByArrival) {
      // A ticket that has left the queue has no links.
      for (let ticket = flow.head; ticket !== undefined; ticket = ticket.flow === flow ? ticket.next : flow.head) {
        yield ticket;
      }
    }
  }
}
