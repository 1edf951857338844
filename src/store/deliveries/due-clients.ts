import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { RecencyMap } from '../../core/collections/recency-map.ts';
import type { Millis } from '../../core/scalars.ts';

/** A client that sends deliveries, and the group to which it belongs. */
export interface DeliveryClient {
  readonly owner: string;
  readonly sender: string;
}

/** Clients at which a search looks, and those of one sender. */
const MAX_VISITS = 100;
const MAX_VISITS_OF_SENDER = 32;
/** Senders whose last client is known. */
const MAX_TURNS = 1000;
/** Of 2³²: 1 / φ. Its multiples are spread evenly. Source: Knuth, The Art of Computer Programming, volume 3, section 6.4. */
const GOLDEN = 0x9e3779b1;

export interface DueSearch {
  readonly now: Millis;
  /** It ends once it has found so many senders that use no place. */
  readonly limit: number;
  readonly isIdle: (sender: string) => boolean;
}

/**
 * Finds the clients of a route that have something due: senders in turn, and of each sender its clients in turn. It looks at a bounded
 * number of them. The next search continues after the last one, so that it comes to all.
 */
export class DueClients {
  readonly #nextSender: StatementSync;
  readonly #nextOwner: StatementSync;
  /** The last sender of each route that had its turn. Routes are few. */
  readonly #lastSenders = new Map<string, string>();
  /** The last client of each sender that had its turn. */
  readonly #lastOwners = new RecencyMap<string, string>();
  /** Searches among the clients of a sender whose last one is not known. */
  #starts = 0;

  constructor(db: DatabaseSync) {
    this.#nextSender = db.prepare(NEXT_SENDER);
    this.#nextOwner = db.prepare(NEXT_OWNER);
  }

  /** The client of all that waits on the route; undefined if there are several, or none. */
  findOnly(route: string): DeliveryClient | undefined {
    const sender = text(this.#nextSender.get(route, '')?.['sender']);
    if (sender === undefined || this.#nextSender.get(route, sender) !== undefined) return undefined;
    const owner = text(this.#nextOwner.get(route, sender, '')?.['owner']);
    if (owner === undefined || this.#nextOwner.get(route, sender, owner) !== undefined) return undefined;
    return { sender, owner };
  }

  /** In the order of their turns. What is due first of a client may be claimed. */
  find(route: string, { now, limit, isIdle }: DueSearch): readonly DeliveryClient[] {
    const found: DeliveryClient[] = [];
    let [visits, idle] = [0, 0];
    const next = (after: string): string | undefined => text(this.#nextSender.get(route, after)?.['sender']);
    for (const sender of inTurn(this.#lastSenders.get(route), next)) {
      const before = found.length;
      visits += this.#findOf(route, sender, now, found);
      if (found.length > before && isIdle(sender)) idle += 1;
      if (visits < MAX_VISITS && idle < limit) continue;
      this.#lastSenders.set(route, sender);
      break;
    }
    return found;
  }

  /** These clients, in the order of their turns. */
  sort(route: string, clients: readonly DeliveryClient[]): readonly DeliveryClient[] {
    const lastSender = this.#lastSenders.get(route) ?? '';
    return clients.toSorted((one, other) => {
      if (one.sender !== other.sender) return compareTurns(one.sender, other.sender, lastSender);
      return compareTurns(one.owner, other.owner, this.#lastOwners.get(turnKey(route, one.sender)) ?? '');
    });
  }

  /** Something of the client is sent: others come before it in the next search. */
  onTurn(route: string, { sender, owner }: DeliveryClient): void {
    this.#lastSenders.set(route, sender);
    this.#setLastOwner(route, sender, owner);
  }

  /** @returns how many clients it has looked at */
  #findOf(route: string, sender: string, now: Millis, found: DeliveryClient[]): number {
    let visits = 0;
    let until = Infinity;
    const next = (after: string): string | undefined => {
      const row = this.#nextOwner.get(route, sender, after);
      until = Number(row?.['until']);
      return text(row?.['owner']);
    };
    for (const owner of inTurn(this.#lastOwner(route, sender), next)) {
      visits += 1;
      if (until <= now) found.push({ sender, owner });
      if (visits < MAX_VISITS_OF_SENDER) continue;
      this.#setLastOwner(route, sender, owner);
      break;
    }
    return visits;
  }

  /** If it is not known, any: then no client always comes first, however many senders there are. Clients are hexadecimal digests. */
  #lastOwner(route: string, sender: string): string {
    const known = this.#lastOwners.get(turnKey(route, sender));
    if (known !== undefined) return known;
    this.#starts += 1;
    return (Math.imul(this.#starts, GOLDEN) >>> 0).toString(16).padStart(8, '0');
  }

  #setLastOwner(route: string, sender: string, owner: string): void {
    this.#lastOwners.set(turnKey(route, sender), owner);
    if (this.#lastOwners.size > MAX_TURNS) this.#lastOwners.deleteOldest();
  }
}

/** Each reads one row. */
export const NEXT_SENDER =
  'SELECT sender FROM deliveries WHERE state = 0 AND route = ? AND sender > ? ORDER BY sender LIMIT 1';
export const NEXT_OWNER = `SELECT owner, until FROM deliveries WHERE state = 0 AND route = ? AND sender = ? AND owner > ?
  ORDER BY owner, until LIMIT 1`;

/** Those after the last one, then those up to it. */
function* inTurn(last: string | undefined, next: (after: string) => string | undefined): Generator<string> {
  for (let each = next(last ?? ''); each !== undefined; each = next(each)) yield each;
  if (last === undefined) return;
  for (let each = next(''); each !== undefined && each <= last; each = next(each)) yield each;
}

/** Negative if `one` comes first after the last one. */
function compareTurns(one: string, other: string, last: string): number {
  if (one > last !== other > last) return one > last ? -1 : 1;
  return one < other ? -1 : Number(one > other);
}

function turnKey(route: string, sender: string): string {
  return `${route}\0${sender}`;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
