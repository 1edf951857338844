import type { DatabaseSync } from 'node:sqlite';
import { ALL_CODES, type StateCode, STATE_CODES } from './delivery-tables.ts';
import { type RowCounter, SenderTotals } from './sender-totals.ts';
import { toCode } from './stored-delivery.ts';

type Counters = Record<StateCode, RowCounter>;

const NO_ROWS: RowCounter = { count: 0, bytes: 0 };
const NONE: Readonly<Counters> = { 0: NO_ROWS, 1: NO_ROWS, 2: NO_ROWS, 3: NO_ROWS, 4: NO_ROWS, 5: NO_ROWS };

const TOTALS = `SELECT sender, state, count(*) AS count, sum(size) AS bytes FROM deliveries NOT INDEXED GROUP BY sender, state`;

/** How many deliveries are stored, by state and by sender, and their bytes. Read once; a transaction that fails changes nothing. */
export class DeliveryCounters {
  readonly #senders = new SenderTotals();
  #stored: Readonly<Counters>;
  /** Within the present transaction. */
  #applied: Counters;

  /** Reads all rows, but no messages. */
  constructor(db: DatabaseSync) {
    this.#stored = this.#applied = NONE;
    this.begin();
    for (const { sender, state, count, bytes } of db.prepare(TOTALS).iterate()) {
      this.#change(toCode(state), Number(count), Number(bytes), String(sender));
    }
    this.commit();
  }

  /** A transaction begins. */
  begin(): void {
    this.#applied = { ...this.#stored };
    this.#senders.begin();
  }

  /** It is stored. */
  commit(): void {
    this.#senders.commit();
    this.#stored = this.#applied;
  }

  add(code: StateCode, size: number, sender: string): void {
    this.#change(code, 1, size, sender);
  }

  subtract(code: StateCode, size: number, sender: string): void {
    this.#change(code, -1, -size, sender);
  }

  count(code: StateCode): number {
    return this.#stored[code].count;
  }

  get bytes(): number {
    return sum(this.#stored, ALL_CODES).bytes;
  }

  /** Of all rows, within the present transaction. */
  get applied(): RowCounter {
    return sum(this.#applied, ALL_CODES);
  }

  /** Of rows that are not removed to make room, within the present transaction. */
  get appliedLasting(): RowCounter {
    return sum(this.#applied, LASTING_CODES);
  }

  /** Of rows that are not removed to make room. */
  get lasting(): RowCounter {
    return sum(this.#stored, LASTING_CODES);
  }

  /** Of the sender's rows that are not removed to make room, within the present transaction. It may be slightly more than it has. */
  appliedLastingOf(sender: string): RowCounter {
    return this.#senders.lastingOf(sender);
  }

  /** The sender with the most rows that are removed to make room; undefined if none has more than a ninth of them. */
  largestEvictable(): string | undefined {
    return this.#senders.largestEvictable();
  }

  #change(code: StateCode, count: number, bytes: number, sender: string): void {
    this.#senders.change(sender, EVICTED.has(code), count, bytes);
    const present = this.#applied[code];
    this.#applied[code] = { count: present.count + count, bytes: present.bytes + bytes };
  }
}

/** Those that are over without having failed are removed to make room, in this order. */
export const EVICTED_CODES = [STATE_CODES.delivered, STATE_CODES.canceled] as const;

const EVICTED: ReadonlySet<StateCode> = new Set(EVICTED_CODES);

const LASTING_CODES = [STATE_CODES.waiting, STATE_CODES.blocked, STATE_CODES.dead, STATE_CODES.unknown] as const;

function sum(counters: Readonly<Counters>, codes: readonly StateCode[]): RowCounter {
  let count = 0;
  let bytes = 0;
  for (const code of codes) {
    count += counters[code].count;
    bytes += counters[code].bytes;
  }
  return { count, bytes };
}
