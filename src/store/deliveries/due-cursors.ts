import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Millis } from '../../core/scalars.ts';

/** A place in an index of waiting deliveries: by the time when each is due, and by number. Times as they are stored. */
export interface DuePlace {
  readonly until: Millis;
  readonly number: number;
}

/** Usually the first one is not claimed. */
const READ_AHEAD = 16;

const START: DuePlace = { until: -Infinity, number: 0 };

/**
 * Finds the deliveries that are due, of a route or of one of its clients: the values of the first columns of an index. For each of these
 * it keeps the place up to which all are claimed, so that those that are being sent are not read again for each one that ends.
 */
export class DueCursors {
  readonly #isClaimed: (number: number) => boolean;
  readonly #cursors = new Map<string, DuePlace>();
  readonly #sameTime: StatementSync;
  readonly #later: StatementSync;

  /** @param columns the first ones of the index */
  constructor(db: DatabaseSync, columns: readonly string[], isClaimed: (number: number) => boolean) {
    this.#isClaimed = isClaimed;
    this.#sameTime = db.prepare(dueAtSameTime(columns));
    this.#later = db.prepare(dueLater(columns));
  }

  /** Returns up to `limit` places that are due; the caller claims all of them. */
  take(values: readonly string[], now: Millis, limit: number): readonly DuePlace[] {
    const taken: DuePlace[] = [];
    while (taken.length < limit) {
      const places = this.#read(values, this.#cursorOf(values), now, limit - taken.length);
      const last = places.at(-1);
      if (last === undefined) break;
      for (const place of places) if (!this.#isClaimed(place.number)) taken.push(place);
      this.#cursors.set(keyOf(values), last);
    }
    return taken;
  }

  /** The first one that is not claimed. */
  first(values: readonly string[]): DuePlace | undefined {
    for (;;) {
      const places = this.#read(values, this.#cursorOf(values), Infinity, READ_AHEAD);
      if (places.length === 0) return undefined;
      for (const place of places) {
        if (!this.#isClaimed(place.number)) return place;
        this.#cursors.set(keyOf(values), place);
      }
    }
  }

  /** Up to `limit` places that are due and not claimed. The caller need not claim them. */
  due(values: readonly string[], now: Millis, limit: number): readonly DuePlace[] {
    const due: DuePlace[] = [];
    let from = this.#cursorOf(values);
    while (due.length < limit) {
      const places = this.#read(values, from, now, READ_AHEAD);
      const last = places.at(-1);
      if (last === undefined) break;
      due.push(...places.filter(({ number }) => !this.#isClaimed(number)));
      from = last;
    }
    return due.slice(0, limit);
  }

  /** A delivery waits at this place that is not claimed. */
  onWaiting(values: readonly string[], { until, number }: DuePlace): void {
    const cursor = this.#cursors.get(keyOf(values));
    if (cursor === undefined || isAfter({ until, number }, cursor)) return;
    this.#cursors.set(keyOf(values), { until, number: number - 1 });
  }

  /** Few are claimed: the next read begins at the first place. */
  forget(values: readonly string[]): void {
    this.#cursors.delete(keyOf(values));
  }

  #cursorOf(values: readonly string[]): DuePlace {
    return this.#cursors.get(keyOf(values)) ?? START;
  }

  /** The next places after this one, claimed or not; none only if there are no more. */
  #read(values: readonly string[], { until, number }: DuePlace, now: Millis, limit: number): readonly DuePlace[] {
    if (until > now) return [];
    const rows = this.#sameTime.all(...values, until, number, limit);
    if (rows.length === 0) rows.push(...this.#later.all(...values, until, now, limit));
    return rows.map((row) => ({ until: Number(row['until']), number: Number(row['number']) }));
  }
}

/** Two statements, because SQLite does not search an index for a pair with the number of the row. */
export function dueAtSameTime(columns: readonly string[]): string {
  return `SELECT number, until FROM deliveries WHERE state = 0 AND ${equal(columns)} AND until = ? AND number > ?
    ORDER BY number LIMIT ?`;
}

export function dueLater(columns: readonly string[]): string {
  return `SELECT number, until FROM deliveries WHERE state = 0 AND ${equal(columns)} AND until > ? AND until <= ?
    ORDER BY until, number LIMIT ?`;
}

function equal(columns: readonly string[]): string {
  return columns.map((column) => `${column} = ?`).join(' AND ');
}

function keyOf(values: readonly string[]): string {
  return values.join('\0');
}

function isAfter(one: DuePlace, other: DuePlace): boolean {
  return one.until > other.until || (one.until === other.until && one.number > other.number);
}
