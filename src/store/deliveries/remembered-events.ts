import { hash } from 'node:crypto';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';

/** Of a SHA-256. */
const DIGEST_BYTES = 16;

interface EventTotals {
  readonly count: number;
  readonly evicted: number;
  /** No event ends before, as times are stored. */
  readonly nextEnd: Millis;
}

/** The ids of the events that each route has accepted, by hash: each for a time, which may end before or after its delivery does. */
export class RememberedEvents {
  readonly #max: number;
  #stored: EventTotals;
  /** Within the present transaction. */
  #applied: EventTotals;
  readonly #get: StatementSync;
  readonly #put: StatementSync;
  readonly #delete: StatementSync;
  readonly #first: StatementSync;
  readonly #removeOver: StatementSync;

  /** @param max how many are remembered: beyond that, those that would end first are forgotten */
  constructor(db: DatabaseSync, max: number) {
    this.#max = max;
    this.#get = db.prepare('SELECT delivery, until FROM delivery_events WHERE event = ?');
    this.#put = db.prepare('INSERT INTO delivery_events VALUES (?, ?, ?)');
    this.#delete = db.prepare('DELETE FROM delivery_events WHERE event = ?');
    this.#first = db.prepare('SELECT event, until FROM delivery_events ORDER BY until LIMIT 1');
    this.#removeOver = db.prepare(`DELETE FROM delivery_events WHERE event IN
      (SELECT event FROM delivery_events WHERE until <= ? ORDER BY until LIMIT ?)`);
    const count = Number(db.prepare('SELECT count(*) AS count FROM delivery_events').get()?.['count']);
    this.#stored = this.#applied = { count, evicted: 0, nextEnd: this.#readNextEnd() };
  }

  /** A transaction begins. */
  begin(): void {
    this.#applied = this.#stored;
  }

  /** It is stored. */
  commit(): void {
    this.#stored = this.#applied;
  }

  get nextEnd(): Millis {
    return this.#stored.nextEnd;
  }

  get bound(): ResourceBound {
    const { count, evicted } = this.#stored;
    return { name: 'delivery_events', used: count / this.#max, reached: evicted };
  }

  /** Returns the id of the delivery that has the event; undefined if it is not remembered. @param now as times are stored */
  find(route: string, eventId: string, now: Millis): string | undefined {
    const row = this.#get.get(digest(route, eventId));
    return row !== undefined && Number(row['until']) > now ? String(row['delivery']) : undefined;
  }

  /** One that is remembered no more may still be stored. */
  remember(route: string, eventId: string, delivery: string, until: Millis): void {
    const event = digest(route, eventId);
    const replaced = Number(this.#delete.run(event).changes);
    this.#put.run(event, delivery, until);
    const { count, nextEnd } = this.#applied;
    this.#set({ count: count + 1 - replaced, nextEnd: Math.min(nextEnd, until) });
    if (this.#applied.count > this.#max) this.#evictFirst();
  }

  /** Removes up to `limit` whose time is over. */
  removeOver(now: Millis, limit: number): void {
    const removed = Number(this.#removeOver.run(now, limit).changes);
    this.#set({ count: this.#applied.count - removed, nextEnd: this.#readNextEnd() });
  }

  #evictFirst(): void {
    const event = this.#first.get()?.['event'];
    if (!(event instanceof Uint8Array)) return;
    this.#delete.run(event);
    const { count, evicted } = this.#applied;
    this.#set({ count: count - 1, evicted: evicted + 1 });
  }

  #set(totals: Partial<EventTotals>): void {
    this.#applied = { ...this.#applied, ...totals };
  }

  #readNextEnd(): Millis {
    return Number(this.#first.get()?.['until'] ?? Infinity);
  }
}

function digest(route: string, eventId: string): Buffer {
  return hash('sha256', `${route}\0${eventId}`, 'buffer').subarray(0, DIGEST_BYTES);
}
