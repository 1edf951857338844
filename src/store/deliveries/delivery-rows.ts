import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { NewDelivery } from '../../core/delivery/delivery-store.ts';
import type { DeliveryAttempt, DeliveryEnd } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';
import { type StatementName, STATEMENTS } from './delivery-statements.ts';
import { ALL_CODES, KIND_CODES, type StateCode, STATE_CODES } from './delivery-tables.ts';
import type { DeliveryTimes } from './delivery-times.ts';
import type { WaitingPlace } from './due-deliveries.ts';
import { readStoredDelivery, type StoredDelivery, toBuffer, toCode } from './stored-delivery.ts';

/** By number. */
export type RowOrder = 'oldest' | 'newest';

export interface RemovedRow {
  readonly code: StateCode;
  readonly size: number;
  readonly sender: string;
}

/** The rows of deliveries and of their messages. Times of arguments and results are on the wall clock, but those of places. */
export class DeliveryRows {
  readonly #db: DatabaseSync;
  readonly #times: DeliveryTimes;
  readonly #prepared = new Map<StatementName, StatementSync>();

  constructor(db: DatabaseSync, times: DeliveryTimes) {
    this.#db = db;
    this.#times = times;
  }

  /** Undefined if the id is taken. */
  insert(delivery: NewDelivery, code: StateCode, sealed: Buffer): WaitingPlace | undefined {
    const { id, kind, route, upstream, acceptedAt, owner, sender, eventId = null, orderKey = null } = delivery;
    const until = this.#times.toStored(acceptedAt);
    const { changes, lastInsertRowid } = this.#statement('insert').run(
      ...[id, KIND_CODES[kind], route, upstream, until, owner, sender, eventId, orderKey],
      ...[code, until, sealed.length, until],
    );
    if (changes === 0) return undefined;
    this.#statement('insertMessage').run(lastInsertRowid, sealed);
    return { number: Number(lastInsertRowid), until, sender, owner };
  }

  find(id: string): StoredDelivery | undefined {
    return readStoredDelivery(this.#statement('find').get(id), this.#times);
  }

  get(number: number): StoredDelivery | undefined {
    return readStoredDelivery(this.#statement('get').get(number), this.#times);
  }

  sealedMessage(number: number): Buffer | undefined {
    return toBuffer(this.#statement('message').get(number)?.['sealed']);
  }

  sealedResult(number: number): Buffer | undefined {
    return toBuffer(this.#statement('result').get(number)?.['sealed']);
  }

  /** @returns the bytes that its row takes more */
  setResult(number: number, sealed: Buffer): number {
    this.#statement('insertResult').run(number, sealed);
    this.#statement('resize').run(sealed.length, number);
    return sealed.length;
  }

  /** @returns the bytes that its row takes less */
  removeResult(number: number): number {
    const size = Number(this.#statement('removeResult').get(number)?.['size'] ?? 0);
    if (size > 0) this.#statement('resize').run(-size, number);
    return size;
  }

  hasOpen(route: string, orderKey: string): boolean {
    return this.#statement('hasOpen').get(route, orderKey) !== undefined;
  }

  recordAttempt(number: number, attempt: DeliveryAttempt, isCounted: boolean): void {
    const { at, took, status = null, reason = null } = attempt;
    this.#statement('attempt').run(Number(isCounted), this.#times.toStored(at), took, status, reason, number);
  }

  postpone({ number, delivery: { sender, owner } }: StoredDelivery, until: Millis): WaitingPlace {
    const place = { number, until: this.#times.toStored(until), sender, owner };
    this.#statement('postpone').run(place.until, number);
    return place;
  }

  end(number: number, end: DeliveryEnd, at: Millis, keptFor: Millis): void {
    const time = this.#times.toStored(at);
    this.#statement('end').run(STATE_CODES[end], time, time + keptFor, number);
  }

  /** Makes the first blocked delivery with the key wait. @returns where it does */
  unblockNext(route: string, orderKey: string, at: Millis): WaitingPlace | undefined {
    const row = this.#statement('unblock').get(this.#times.toStored(at), route, orderKey);
    if (row === undefined) return undefined;
    const client = { sender: String(row['sender']), owner: String(row['owner']) };
    return { number: Number(row['number']), until: Number(row['until']), ...client };
  }

  /** With a new schedule. */
  restart({ number, delivery: { sender, owner } }: StoredDelivery, code: StateCode, now: Millis): WaitingPlace {
    const until = this.#times.toStored(now);
    this.#statement('restart').run(code, until, until, number);
    return { number, until, sender, owner };
  }

  remove(number: number): RemovedRow | undefined {
    const row = this.#statement('remove').get(number);
    this.#statement('removeMessage').run(number);
    this.#statement('removeResult').get(number);
    return row && { code: toCode(row['state']), size: Number(row['size']), sender: String(row['sender']) };
  }

  /** In this order, after `after`. */
  list(order: RowOrder, route: string, code: StateCode, after: number, limit: number): readonly number[] {
    return this.#statement(order === 'newest' ? 'listNewest' : 'list')
      .all(route, code, after, limit)
      .map(({ number }) => Number(number));
  }

  /** Those after the delivery with the id in this order are after this number. The delivery may have been removed. */
  numberOf(id: string, order: RowOrder): number {
    const found = this.#statement('find').get(id)?.['number'];
    if (found !== undefined) return Number(found);
    const following = Number(this.#statement('following').get(id)?.['number'] ?? Infinity);
    return order === 'newest' ? following : following - 1;
  }

  /** Those that are over, the first to be removed first. @param until only those kept until then, as times are stored */
  over(code: StateCode, until: Millis, limit: number): readonly number[] {
    return this.#statement('over')
      .all(code, until, limit)
      .map(({ number }) => Number(number));
  }

  /** The one of the sender that is over and would be removed first; undefined if it has none. */
  firstOverOf(code: StateCode, sender: string): number | undefined {
    const number = this.#statement('firstOverOf').get(code, sender)?.['number'];
    return number === undefined ? undefined : Number(number);
  }

  /** Those that are not over, and wait since this time or longer, the longest first. Times as they are stored. */
  openSince(since: Millis, limit: number): readonly { readonly number: number; readonly since: Millis }[] {
    return this.#statement('openSince')
      .all(since, limit)
      .map((row) => ({ number: Number(row['number']), since: Number(row['waits_since']) }));
  }

  /** Until when all that are over are kept, as times are stored. */
  nextRemoval(): Millis {
    return Math.min(
      ...ALL_CODES.map((code) => Number(this.#statement('nextRemoval').get(code)?.['until'] ?? Infinity)),
    );
  }

  /** The routes that have deliveries. */
  routes(): string[] {
    const routes: string[] = [];
    for (let last: unknown = ''; ; ) {
      last = this.#statement('nextRoute').get(String(last))?.['route'];
      if (typeof last !== 'string') return routes;
      routes.push(last);
    }
  }

  #statement(name: StatementName): StatementSync {
    const prepared = this.#prepared.get(name) ?? this.#db.prepare(STATEMENTS[name]);
    this.#prepared.set(name, prepared);
    return prepared;
  }
}
