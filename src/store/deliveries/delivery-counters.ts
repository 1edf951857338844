import type { DatabaseSync } from 'node:sqlite';
import { ALL_CODES, type StateCode, STATE_CODES } from './delivery-tables.ts';

export interface RowCounter {
  readonly count: number;
  /** Of sealed messages and results. */
  readonly bytes: number;
}

type Counters = Record<StateCode, RowCounter>;

/** How many deliveries are stored, by state, and their bytes. Read once; a transaction that fails changes nothing. */
export class DeliveryCounters {
  #stored: Readonly<Counters>;
  /** Within the present transaction. */
  #applied: Counters;

  /** Reads all rows, but no messages. */
  constructor(db: DatabaseSync) {
    const figures = ALL_CODES.map(
      (code) => `count(*) FILTER (WHERE state = ${code}) AS count${code},
        coalesce(sum(size) FILTER (WHERE state = ${code}), 0) AS bytes${code}`,
    );
    const row = db.prepare(`SELECT ${figures.join(', ')} FROM deliveries NOT INDEXED`).get();
    const read = (code: StateCode): RowCounter => ({
      count: Number(row?.[`count${code}`]),
      bytes: Number(row?.[`bytes${code}`]),
    });
    this.#stored = { 0: read(0), 1: read(1), 2: read(2), 3: read(3), 4: read(4), 5: read(5) };
    this.#applied = { ...this.#stored };
  }

  /** A transaction begins. */
  begin(): void {
    this.#applied = { ...this.#stored };
  }

  /** It is stored. */
  commit(): void {
    this.#stored = this.#applied;
  }

  add(code: StateCode, size: number): void {
    this.#change(code, 1, size);
  }

  subtract(code: StateCode, size: number): void {
    this.#change(code, -1, -size);
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

  #change(code: StateCode, count: number, bytes: number): void {
    const present = this.#applied[code];
    this.#applied[code] = { count: present.count + count, bytes: present.bytes + bytes };
  }
}

/** Those that are over without having failed are removed to make room, in this order. */
export const EVICTED_CODES = [STATE_CODES.delivered, STATE_CODES.canceled] as const;

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
