import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Millis } from '../../core/scalars.ts';
import type { DeliveryClaim } from './delivery-claims.ts';
import { type DeliveryClient, DueClients } from './due-clients.ts';
import { DueCursors, type DuePlace } from './due-cursors.ts';
import { PlacesInUse } from './places-in-use.ts';

/** Where a delivery waits, and whose it is. */
export interface WaitingPlace extends DuePlace, DeliveryClient {}

export interface DueTake {
  readonly now: Millis;
  /** So many are claimed at most, those that are not sent included: a step is short. */
  readonly limit: number;
  /** Places of the route in all. */
  readonly concurrency: number;
  /** Claims a delivery, and calls `onSending` if it is sent. One that cannot be read is not. */
  readonly claim: (number: number) => void;
}

/** While a client may use no more places, its route is looked at again so often: what others have postponed may be due. */
const LOOK_AGAIN: Millis = 1000;

/** So many deliveries are read to find their clients. If more are due, the clients are searched. */
const FEW_DUE = 16;

interface RoutePlaces {
  readonly bySender: PlacesInUse;
  readonly byClient: PlacesInUse;
}

/**
 * Shares the places of a route among the clients that have deliveries due. A place goes to the sender that uses the fewest, and of its
 * clients to the one that uses the fewest, by turns if several do. While others are active, one sender, or client, uses all places but a
 * ninth. Times are as they are stored.
 */
export class DueDeliveries {
  readonly #clients: DueClients;
  readonly #ofRoute: DueCursors;
  readonly #ofClient: DueCursors;
  readonly #clientOf: StatementSync;
  readonly #places = new Map<string, RoutePlaces>();
  /** Those whose attempts are in progress. */
  readonly #sending = new Set<DeliveryClaim>();

  constructor(db: DatabaseSync, isClaimed: (number: number) => boolean) {
    this.#clients = new DueClients(db);
    this.#ofRoute = new DueCursors(db, ROUTE_COLUMNS, isClaimed);
    this.#ofClient = new DueCursors(db, CLIENT_COLUMNS, isClaimed);
    this.#clientOf = db.prepare(CLIENT_OF);
  }

  /** @returns when the next one can be taken; undefined if none waits */
  take(route: string, take: DueTake): Millis | undefined {
    const { now, limit } = take;
    let claimed = limit > 0 ? this.#takeInTurn(route, take) : 0;
    for (;;) {
      const first = this.#ofRoute.first([route]);
      if (first === undefined || claimed >= limit || first.until > now) return first?.until;
      // The search has not come to its client, or that may use no more places.
      const client = readClient(this.#clientOf.get(first.number));
      const left = Math.min(limit - claimed, client === undefined ? 0 : this.#leftFor(route, client, take));
      if (client === undefined || left === 0) return now + LOOK_AGAIN;
      const found = this.#takeOf(route, client, take, left);
      if (found === 0) return now + LOOK_AGAIN;
      claimed += found;
    }
  }

  /** An attempt begins. */
  onSending(claim: DeliveryClaim, now: Millis): void {
    const { route, sender } = claim;
    const { bySender, byClient } = this.#placesOf(route);
    this.#sending.add(claim);
    bySender.add(sender, now);
    byClient.add(clientKey(claim), now);
  }

  /** The attempt has ended, if there was one. */
  onEnded(claim: DeliveryClaim): void {
    if (!this.#sending.delete(claim)) return;
    const { route, sender, owner } = claim;
    const { bySender, byClient } = this.#placesOf(route);
    bySender.remove(sender);
    byClient.remove(clientKey(claim));
    if (byClient.usedBy(clientKey(claim)) === 0) this.#ofClient.forget([route, sender, owner]);
  }

  /** A delivery waits at this place that is not claimed. */
  onWaiting(route: string, place: WaitingPlace): void {
    this.#ofRoute.onWaiting([route], place);
    this.#ofClient.onWaiting([route, place.sender, place.owner], place);
  }

  /** @returns how many were claimed */
  #takeInTurn(route: string, take: DueTake): number {
    const { limit } = take;
    const { bySender, byClient } = this.#placesOf(route);
    const open = [...this.#findClients(route, take)];
    let claimed = 0;
    while (open.length > 0 && claimed < limit) {
      const client = fewest(
        open,
        ({ sender }) => bySender.usedBy(sender),
        (each) => byClient.usedBy(clientKey(each)),
      );
      const wanted = open.length === 1 ? limit - claimed : 1;
      const left = Math.min(wanted, this.#leftFor(route, client, take));
      const found = this.#takeOf(route, client, take, left);
      claimed += found;
      if (found > 0) this.#clients.onTurn(route, client);
      if (found < wanted) open.splice(open.indexOf(client), 1);
    }
    return claimed;
  }

  /** Those that have something due, the next one first. All of them if they are few, or have little due. */
  #findClients(route: string, { now, limit }: DueTake): readonly DeliveryClient[] {
    const only = this.#clients.findOnly(route);
    if (only !== undefined) return [only];
    const due = this.#ofRoute.due([route], now, FEW_DUE);
    if (due.length === FEW_DUE) {
      const { bySender } = this.#placesOf(route);
      return this.#clients.find(route, { now, limit, isIdle: (sender) => bySender.usedBy(sender) === 0 });
    }
    const clients = new Map<string, DeliveryClient>();
    for (const { number } of due) {
      const client = readClient(this.#clientOf.get(number));
      if (client !== undefined) clients.set(clientKey(client), client);
    }
    return this.#clients.sort(route, [...clients.values()]);
  }

  /** @returns how many were due, and are claimed */
  #takeOf(route: string, client: DeliveryClient, { now, claim }: DueTake, limit: number): number {
    const values = [route, client.sender, client.owner];
    const places = this.#ofClient.take(values, now, limit);
    for (const { number } of places) claim(number);
    if (this.#placesOf(route).byClient.usedBy(clientKey(client)) === 0) this.#ofClient.forget(values);
    return places.length;
  }

  #leftFor(route: string, client: DeliveryClient, { concurrency, now }: DueTake): number {
    const { bySender, byClient } = this.#placesOf(route);
    const ofSender = bySender.leftFor(client.sender, concurrency, now);
    return Math.min(ofSender, byClient.leftFor(clientKey(client), concurrency, now));
  }

  #placesOf(route: string): RoutePlaces {
    const known = this.#places.get(route);
    if (known !== undefined) return known;
    const places = { bySender: new PlacesInUse(), byClient: new PlacesInUse() };
    this.#places.set(route, places);
    return places;
  }
}

/** The first columns of the indexes. */
export const ROUTE_COLUMNS = ['route'] as const;
export const CLIENT_COLUMNS = ['route', 'sender', 'owner'] as const;

export const CLIENT_OF = 'SELECT sender, owner FROM deliveries WHERE number = ?';

function readClient(row: Readonly<Record<string, unknown>> | undefined): DeliveryClient | undefined {
  return row && { sender: String(row['sender']), owner: String(row['owner']) };
}

function clientKey({ sender, owner }: DeliveryClient): string {
  return `${sender} ${owner}`;
}

/** The first one with the fewest by the first figure; if there are several, by the second one. */
function fewest<T>(items: readonly T[], first: (item: T) => number, second: (item: T) => number): T {
  return items.reduce((best, item) => {
    const difference = first(item) - first(best) || second(item) - second(best);
    return difference < 0 ? item : best;
  });
}
