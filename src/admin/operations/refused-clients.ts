import type { Millis } from '../../core/scalars.ts';

/** Refusals are counted over this time, or up to twice as long. */
const SPAN: Millis = 5000;
/** With this many counters, a count is too low by at most a sixteenth of all refusals. */
const MAX_COUNTERS = 15;

export interface RefusalCounts {
  readonly total: number;
  /** By the hash of the client; only clients with many of the refusals. */
  readonly clients: ReadonlyMap<string, number>;
}

export const NO_REFUSALS: RefusalCounts = { total: 0, clients: new Map() };

/** By the algorithm of Misra and Gries. */
class FrequentClients implements RefusalCounts {
  total = 0;
  readonly clients = new Map<string, number>();

  add(client: string): void {
    const { clients } = this;
    this.total += 1;
    const count = clients.get(client);
    if (count !== undefined || clients.size < MAX_COUNTERS) return void clients.set(client, (count ?? 0) + 1);
    for (const [each, refusals] of clients) {
      if (refusals === 1) clients.delete(each);
      else clients.set(each, refusals - 1);
    }
  }
}

/**
 * Counts the recent refusals of one upstream by client, in bounded memory: any client that gets more than a sixteenth of them is
 * found. Counts are too low by at most that much. Source: J. Misra, D. Gries: Finding repeated elements (1982).
 */
export class RefusedClients {
  #startedAt: Millis = Number.NEGATIVE_INFINITY;
  #current = new FrequentClients();
  #previous: RefusalCounts = NO_REFUSALS;

  add(client: string, now: Millis): void {
    this.#advance(now);
    this.#current.add(client);
  }

  counts(now: Millis): RefusalCounts {
    this.#advance(now);
    return sumRefusals([this.#previous, this.#current]);
  }

  #advance(now: Millis): void {
    const age = now - this.#startedAt;
    if (age < SPAN) return;
    this.#previous = age < 2 * SPAN ? this.#current : NO_REFUSALS;
    this.#current = new FrequentClients();
    this.#startedAt = age < 2 * SPAN ? this.#startedAt + SPAN : now;
  }
}

export function sumRefusals(all: Iterable<RefusalCounts>): RefusalCounts {
  const clients = new Map<string, number>();
  let total = 0;
  for (const counts of all) {
    total += counts.total;
    for (const [client, count] of counts.clients) clients.set(client, (clients.get(client) ?? 0) + count);
  }
  return { total, clients };
}
