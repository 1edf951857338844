import {
  type AddResult,
  DeliveriesUnavailable,
  type DeliveryFilter,
  type DeliveryStore,
  type DeliveryTotals,
  type DueDelivery,
  type NewDelivery,
  type TakenDeliveries,
} from '../../core/delivery/delivery-store.ts';
import type { Delivery, DeliveryAttempt, DeliveryMessage, DeliveryResult } from '../../core/delivery/delivery.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';
import { MessageSeal } from '../message-seal.ts';
import { type DeliveryClaim, DeliveryClaims } from './delivery-claims.ts';
import { DeliveryCounters } from './delivery-counters.ts';
import { DeliveryExpiry } from './delivery-expiry.ts';
import { DeliveryReader } from './delivery-reader.ts';
import { encodeDeliveryResult } from './delivery-result-codec.ts';
import { DeliveryRoom } from './delivery-room.ts';
import { DeliveryRows } from './delivery-rows.ts';
import type { StoredDelivery } from './stored-delivery.ts';
import { DELIVERY_TABLES, endOfCode, STATE_CODES } from './delivery-tables.ts';
import { DeliveryTimes } from './delivery-times.ts';
import { DeliveryWriter, type EndChange } from './delivery-writer.ts';
import { DueDeliveries } from './due-deliveries.ts';
import { RememberedEvents } from './remembered-events.ts';
import type { SqliteDeliveryStoreOptions } from './sqlite-delivery-store-options.ts';

/** How many deliveries are stored by default, those that are over included. */
export const MAX_DELIVERIES = 1_000_000;
/** The bytes of their messages, by default. */
export const MAX_DELIVERY_BYTES = 1024 * 1024 * 1024;
/** How many ids of events are remembered by default. */
export const MAX_DELIVERY_EVENTS = 4_000_000;

/** While the database cannot be written, and so many results of attempts wait to be stored, no more deliveries are sent. */
const MAX_UNSTORED = 1000;

/**
 * Deliveries in the database of this process. What it works on is claimed in memory, so a send needs no transaction before it, and a
 * process that is killed leaves it waiting. Until the result of a send is stored, the delivery is `sending`.
 */
export class SqliteDeliveryStore implements DeliveryStore {
  readonly #options: SqliteDeliveryStoreOptions;
  readonly #times: DeliveryTimes;
  readonly #rows: DeliveryRows;
  readonly #reader: DeliveryReader;
  readonly #resultSeal: MessageSeal;
  readonly #events: RememberedEvents;
  readonly #room: DeliveryRoom;
  readonly #claims = new DeliveryClaims();
  readonly #due: DueDeliveries;
  readonly #writer: DeliveryWriter;
  /** Routes whose deliveries may be due once the present changes are stored. */
  readonly #changedRoutes = new Set<string>();

  /** @throws an error of SQLite */
  constructor(options: SqliteDeliveryStoreOptions) {
    const { commit, secret, wallClock, clockShift = () => 0, maxEvents = MAX_DELIVERY_EVENTS } = options;
    const { maxCount = MAX_DELIVERIES, maxBytes = MAX_DELIVERY_BYTES, maxAge = () => Infinity } = options;
    const { db } = commit;
    db.exec(DELIVERY_TABLES);
    this.#options = options;
    const seal = new MessageSeal(secret, 'delivery');
    const resultSeal = (this.#resultSeal = new MessageSeal(secret, 'delivery result'));
    this.#times = new DeliveryTimes(wallClock, clockShift);
    const rows = new DeliveryRows(db, this.#times);
    const counters = new DeliveryCounters(db);
    this.#rows = rows;
    this.#events = new RememberedEvents(db, maxEvents);
    this.#room = new DeliveryRoom({ rows, counters, maxCount, maxBytes });
    const expiry = new DeliveryExpiry({
      ...{ rows, maxAge, isClaimed: (number) => this.#claims.isClaimed(number), claimed: () => this.#claims.size },
    });
    this.#due = new DueDeliveries(db, (number) => this.#claims.isClaimed(number));
    this.#reader = new DeliveryReader({ rows, counters, seal, resultSeal, claims: this.#claims });
    this.#writer = new DeliveryWriter({
      ...{ commit, rows, counters, seal, events: this.#events, room: this.#room, expiry, times: this.#times },
      keepFor: (route, end) => options.keepFor(route, end),
      onExpired: (deliveries) => options.onExpired?.(deliveries),
      onCallback: (route, isStored) => options.onCallback?.(route, isStored),
      onChanged: (claim) => {
        this.#claims.release(claim);
        this.#changedRoutes.add(claim.route);
      },
      onWaiting: (route, place) => {
        this.#reader.addRoute(route);
        this.#due.onWaiting(route, place);
        this.#changedRoutes.add(route);
      },
      onAllStored: () => this.#reportDue(),
    });
  }

  get bounds(): readonly ResourceBound[] {
    return [...this.#room.bounds, this.#events.bound];
  }

  /** All that have or had deliveries. */
  get routes(): Iterable<string> {
    return this.#reader.routes;
  }

  get totals(): DeliveryTotals {
    return { ...this.#reader.totals, oldestAt: this.#tryRead(() => this.#reader.oldestAt(), undefined) };
  }

  add(delivery: NewDelivery, onAdded: (result: AddResult) => void): void {
    this.#writer.add(delivery, onAdded);
  }

  takeDue(route: string, now: Millis, limit: number, concurrency = Infinity): Promise<TakenDeliveries> {
    if (this.#writer.failed >= MAX_UNSTORED) {
      this.#changedRoutes.add(route);
      return Promise.resolve(NONE_TAKEN);
    }
    const deliveries: DueDelivery[] = [];
    const claim = (number: number): void => {
      const taken = this.#take(number, now);
      if (taken !== undefined) deliveries.push(taken);
    };
    const take = { now: this.#times.toStored(now), limit, concurrency, claim };
    const until = this.#tryRead(() => this.#due.take(route, take), undefined);
    return Promise.resolve({ deliveries, nextDueAt: until === undefined ? undefined : this.#times.toWall(until) });
  }

  postpone(id: string, until: Millis, attempt: DeliveryAttempt | undefined): void {
    const claim = this.#claims.get(id);
    if (claim === undefined) return;
    this.#due.onEnded(claim);
    this.#writer.change(claim, { kind: 'postpone', until, attempt });
  }

  end(...[id, end, at, attempt, result, callback]: Parameters<DeliveryStore['end']>): void {
    const claim = this.#claims.get(id);
    if (claim === undefined) return;
    const sealedResult = result && this.#resultSeal.seal(id, encodeDeliveryResult(result));
    this.#end(claim, { end, at, attempt, isCounted: true, sealedResult, callback });
  }

  find(id: string): Promise<Delivery | undefined> {
    return this.#read(() => {
      const row = this.#rows.find(id);
      return row && this.#reader.toDelivery(row);
    });
  }

  list(filter: DeliveryFilter): Promise<readonly Delivery[]> {
    return this.#read(() => this.#reader.list(filter));
  }

  message(id: string): Promise<DeliveryMessage | undefined> {
    return this.#read(() => {
      const row = this.#rows.find(id);
      return row && this.#reader.readMessage(row);
    });
  }

  result(id: string): Promise<DeliveryResult | undefined> {
    return this.#read(() => {
      const row = this.#rows.find(id);
      return row && this.#reader.readResult(row);
    });
  }

  retry(id: string, now: Millis): Promise<boolean> {
    return this.#read(() => {
      const row = this.#rows.find(id);
      if (row === undefined || row.code === STATE_CODES.delivered || this.#claims.isClaimed(row.number)) return false;
      this.#writer.change(this.#claim(row, undefined), { kind: 'restart', now });
      return true;
    });
  }

  cancel(id: string, now: Millis): Promise<boolean> {
    return this.#read(() => {
      const row = this.#rows.find(id);
      if (row === undefined || endOfCode(row.code) !== undefined || this.#claims.isClaimed(row.number)) return false;
      const change = { end: 'canceled', at: now, attempt: undefined, isCounted: false } as const;
      this.#end(this.#claim(row, undefined), change);
      return true;
    });
  }

  #end(claim: DeliveryClaim, change: Omit<EndChange, 'kind' | 'keptFor'>): void {
    this.#due.onEnded(claim);
    this.#writer.change(claim, { kind: 'end', ...change, keptFor: this.#options.keepFor(claim.route, change.end) });
  }

  /** Claims a delivery that is due. Undefined if its message cannot be read: then it ends. */
  #take(number: number, now: Millis): DueDelivery | undefined {
    const row = this.#tryRead(() => this.#rows.get(number), undefined);
    if (row === undefined) return undefined;
    const message = this.#tryRead(() => this.#reader.readMessage(row), undefined);
    const claim = this.#claim(row, message && now);
    if (message !== undefined) return { delivery: this.#reader.toDelivery(row), message };
    const attempt = { at: now, took: 0, status: undefined, reason: 'unreadable' };
    // A write may have been sent before.
    const end = row.delivery.kind === 'write' ? 'unknown' : 'dead';
    this.#end(claim, { end, at: now, attempt, isCounted: false });
    this.#options.onUnreadable?.(row.delivery, end);
    return undefined;
  }

  #claim({ number, delivery }: StoredDelivery, since: Millis | undefined): DeliveryClaim {
    const { id, route, owner, sender } = delivery;
    const claim = { id, number, route, owner, sender, since };
    this.#claims.add(claim);
    if (since !== undefined) this.#due.onSending(claim, this.#times.toStored(since));
    return claim;
  }

  #reportDue(): void {
    const routes = [...this.#changedRoutes];
    this.#changedRoutes.clear();
    for (const route of routes) this.#options.onDue?.(route);
  }

  /** @param otherwise the result if the database is damaged, for example, or closed */
  #tryRead<T>(read: () => T, otherwise: T): T {
    if (!this.#options.commit.db.isOpen) return otherwise;
    try {
      return read();
    } catch (error) {
      this.#options.onProblem?.(error);
      return otherwise;
    }
  }

  /** Rejects if the database is damaged, for example, or closed. */
  #read<T>(read: () => T): Promise<T> {
    const unread = Symbol('unread');
    const result = this.#tryRead<T | typeof unread>(read, unread);
    return result === unread ? Promise.reject(new DeliveriesUnavailable(UNREADABLE)) : Promise.resolve(result);
  }
}

const UNREADABLE = 'The database with the deliveries cannot be read.';
const NONE_TAKEN: TakenDeliveries = { deliveries: [], nextDueAt: undefined };
