import type { Limit } from '../../../src/core/limits/limit.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { Millis, Random } from '../../../src/core/exchange/attempt-outcome.ts';
import { Waiting } from '../../../src/core/admission/wait-queue.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { REFS, settingsFor, UPSTREAM } from './crowd.ts';

export interface Size {
  readonly queued: number;
  /** Who they are of, each as often as any other. */
  readonly clients: number;
}

/** One a millisecond is let go. */
const RATE = 1000;
const NEVER: Millis = 1e9;

/** Those who wait before one limit: the queue of the gate, without what the gate does before and after. */
export class Line {
  served = 0;
  expired = 0;
  readonly #waiting: Waiting;
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
    this.#waiting = new Waiting(store, listen);
    const limit = REFS[0] && store.find(REFS[0]);
    if (limit === undefined) throw new Error('a limit that is known is made at once');
    this.#limit = limit;
    limit.meter.take(this.#now, this.#now); // who comes now has to wait
  }

  get queued(): number {
    return this.#limit.queue.size;
  }

  /** Patient ones, or such that give up in no order, each before the next one is served. */
  makeTickets(count: number, patience: 'patient' | 'impatient' = 'patient'): Ticket[] {
    return Array.from({ length: count }, () => {
      const client = this.#made % this.#slots.length;
      this.#made += 1;
      const ticket = new Ticket(UPSTREAM, String(client), 1, REFS, ({ kind }) => {
        if (kind === 'admitted') this.served += 1;
        else this.expired += 1;
      });
      ticket.slot = this.#slots[client];
      ticket.limits = [this.#limit];
      ticket.expiresAt = this.#now + (patience === 'patient' ? NEVER : 0.9 * this.#random());
      return ticket;
    });
  }

  enqueue(tickets: readonly Ticket[]): void {
    for (const ticket of tickets) {
      if (ticket.slot !== undefined) this.#waiting.enqueue(ticket, this.#limit, ticket.slot, this.#now);
    }
  }

  leave(tickets: readonly Ticket[]): void {
    for (const ticket of tickets) this.#waiting.dequeue(ticket, this.#now);
  }

  /** Whoever is served next goes behind the others of its weight. */
  reorder(times: number): void {
    const { queue } = this.#limit;
    for (let i = 0; i < times; i += 1) {
      const ticket = queue.peek();
      if (ticket?.slot === undefined) return;
      queue.take(ticket);
      queue.push(ticket.slot, 1, ticket, this.#now);
    }
  }

  /** Returns the sum of what it was told: when, again and again. */
  look(times: number): Millis {
    let sum = 0;
    for (let i = 0; i < times; i += 1) sum += this.#waiting.nextWake() ?? NEVER;
    return sum;
  }

  /** As a timer would: wakes when there is something to do. */
  wake(times: number): void {
    for (let i = 0; i < times; i += 1) {
      this.#now = this.#waiting.nextWake() ?? this.#now;
      this.#waiting.wake(this.#now);
    }
  }
}
