import type { Limit } from '../../../src/core/limits/limit.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { Millis, Random } from '../../../src/core/scalars.ts';
import { WaitQueue } from '../../../src/core/admission/wait-queue.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { REFS, settingsFor, UPSTREAM } from './client-population.ts';

export interface Size {
  readonly queued: number;
  /** Number of clients, with equally many tickets each. */
  readonly clients: number;
}

/** Admits one request a millisecond. */
const RATE = 1000;
const NEVER: Millis = 1e9;

/** The queue of one limit, without the rest of the gate. */
export class QueueHarness {
  served = 0;
  expired = 0;
  readonly #waiting: WaitQueue;
  readonly #limit: Limit;
  readonly #slots: readonly number[];
  readonly #random: Random = seededRandom(3);
  #now: Millis = 1000;
  #made = 0;

  constructor({ queued, clients }: Size) {
    const listen = (): void => undefined;
    const upstreams = [settingsFor(RATE, 2 * queued)];
    const store = new MemoryStore({ upstreams, maxTracked: clients, random: this.#random, listen });
    const enter = (client: number): number => store.clients.enter(String(client), this.#now, UPSTREAM);
    this.#slots = Array.from({ length: clients }, (_, client) => enter(client));
    this.#waiting = new WaitQueue(store, listen);
    const limit = REFS[0] && store.findLimit(REFS[0]);
    if (limit === undefined) throw new Error('a limit that is known is made at once');
    this.#limit = limit;
    limit.meter.take(this.#now, this.#now); // later requests have to wait
  }

  get queued(): number {
    return this.#limit.queue.size;
  }

  /** Creates tickets that wait, or whose deadlines pass in random order before the next is served. */
  makeTickets(count: number, patience: 'patient' | 'impatient' = 'patient'): Ticket[] {
    return Array.from({ length: count }, () => {
      const client = this.#made % this.#slots.length;
      this.#made += 1;
      const ticket = new Ticket(UPSTREAM, String(client), 1, REFS, ({ kind }) => {
        if (kind === 'admitted') this.served += 1;
        else this.expired += 1;
      });
      ticket.clientSlot = this.#slots[client];
      ticket.limits = [this.#limit];
      ticket.expiresAt = this.#now + (patience === 'patient' ? NEVER : 0.9 * this.#random());
      return ticket;
    });
  }

  enqueue(tickets: readonly Ticket[]): void {
    for (const ticket of tickets) {
      if (ticket.clientSlot !== undefined) this.#waiting.enqueue(ticket, this.#limit, ticket.clientSlot, this.#now);
    }
  }

  leave(tickets: readonly Ticket[]): void {
    for (const ticket of tickets) this.#waiting.dequeue(ticket, this.#now);
  }

  /** Moves the client served next behind the others of its weight. */
  reorder(times: number): void {
    const { queue } = this.#limit;
    for (let i = 0; i < times; i += 1) {
      const ticket = queue.peek();
      if (ticket?.clientSlot === undefined) return;
      queue.take(ticket);
      queue.push(ticket.clientSlot, 1, ticket, this.#now);
    }
  }

  /** Calls `nextWake` repeatedly and returns the sum of the results. */
  look(times: number): Millis {
    let sum = 0;
    for (let i = 0; i < times; i += 1) sum += this.#waiting.nextWake() ?? NEVER;
    return sum;
  }

  /** Wakes the queue as a timer would. */
  wake(times: number): void {
    for (let i = 0; i < times; i += 1) {
      this.#now = this.#waiting.nextWake() ?? this.#now;
      this.#waiting.wake(this.#now);
    }
  }
}
