import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Millis } from '../../core/scalars.ts';

/** A place in the index of waiting deliveries: by the time when each is due, and by number. Times as they are stored. */
export interface DuePlace {
  readonly until: Millis;
  readonly number: number;
}

/** Usually the first one is not claimed. */
const READ_AHEAD = 16;

const START: DuePlace = { until: -Infinity, number: 0 };

/**
 * Finds the deliveries that are due. For each route it keeps the place up to which all are claimed, so that those that are being sent
 * are not read again for each one that ends.
 */
export class DueCursors {
  readonly #isClaimed: (number: number) => boolean;
  readonly #cursors = new Map<string, DuePlace>();
  readonly #sameTime: StatementSync;
  readonly #later: StatementSync;

  constructor(db: DatabaseSync, isClaimed: (number: number) => boolean) {
    this.#isClaimed = isClaimed;
    this.#sameTime = db.prepare(DUE_AT_SAME_TIME);
    this.#later = db.prepare(DUE_LATER);
  }

  /** Returns up to `limit` places of the route that are due; the caller claims all of them. */
  take(route: string, now: Millis, limit: number): readonly DuePlace[] {
    const taken: DuePlace[] = [];
    while (taken.length < limit) {
      const places = this.#read(route, now, limit - taken.length);
      const last = places.at(-1);
      if (last === undefined) break;
      for (const place of places) if (!this.#isClaimed(place.number)) taken.push(place);
      this.#cursors.set(route, last);
    }
    return taken;
  }

  /** When the first one is due that is not claimed. */
  nextDueAt(route: string): Millis | undefined {
    for (;;) {
      const places = this.#read(route, Infinity, READ_AHEAD);
      if (places.length === 0) return undefined;
      for (const place of places) {
        if (!this.#isClaimed(place.number)) return place.until;
        this.#cursors.set(route, place);
      }
    }
  }

  /** A delivery waits at this place that is not claimed. */
  onWaiting(route: string, { until, number }: DuePlace): void {
    const cursor = this.#cursors.get(route);
    if (cursor === undefined || isAfter({ until, number }, cursor)) return;
    this.#cursors.set(route, { until, number: number - 1 });
  }

  /** The next places after the cursor, claimed or not; none only if there are no more. */
  #read(route: string, now: Millis, limit: number): readonly DuePlace[] {
    const { until, number } = this.#cursors.get(route) ?? START;
    if (until > now) return [];
    const rows = this.#sameTime.all(route, until, number, limit);
    if (rows.length === 0) rows.push(...this.#later.all(route, until, now, limit));
    return rows.map((row) => ({ until: Number(row['until']), number: Number(row['number']) }));
  }
}

/** Two statements, because SQLite does not search an index for a pair with the number of the row. */
export const DUE_AT_SAME_TIME =
  'SELECT number, until FROM deliveries WHERE state = 0 AND route = ? AND until = ? AND number > ? ORDER BY number LIMIT ?';
export const DUE_LATER =
  'SELECT number, until FROM deliveries WHERE state = 0 AND route = ? AND until > ? AND until <= ? ORDER BY until, number LIMIT ?';

function isAfter(one: DuePlace, other: DuePlace): boolean {
  return one.until > other.until || (one.until === other.until && one.number > other.number);
}
