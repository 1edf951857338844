import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { StoredCount } from '../../core/quota/calendar/quota-counts.ts';
import type { EpochMillis } from '../../core/quota/calendar/quota-period.ts';
import type { QuotaJournal, StoredQuota } from '../../core/quota/calendar/quota-journal.ts';
import type { Millis } from '../../core/scalars.ts';

/** A month has 31 days at most, and a rolling period 24. */
const MAX_PERIOD: Millis = 32 * 86_400_000;
/** Rows that `removeEnded` looks at in one call: some milliseconds. */
const ROWS_AT_ONCE = 1000;

const FIRST_ROW = { upstream: '', name: '' };

/** The counts of calendar quotas, in the database. */
export class StoredQuotas implements QuotaJournal {
  readonly #db: DatabaseSync;
  readonly #onProblem: (error: unknown) => void;
  readonly #get: StatementSync;
  readonly #put: StatementSync;
  readonly #findStepEnd: StatementSync;
  readonly #removeEnded: StatementSync;
  /** The last row that `removeEnded` has looked at. */
  #cleanedUpTo = FIRST_ROW;
  /** What to write at the end, by upstream and name. */
  readonly #atEnd = new Map<string, () => void>();
  #hasFailed = false;

  /** @param onProblem counts could not be stored, or can be stored again (undefined) */
  constructor(db: DatabaseSync, onProblem: (error: unknown) => void) {
    this.#db = db;
    this.#onProblem = onProblem;
    this.#get = db.prepare('SELECT period, counts FROM quotas WHERE upstream = ? AND name = ?');
    this.#put = db.prepare('INSERT OR REPLACE INTO quotas VALUES (?, ?, ?, ?)');
    this.#findStepEnd = db.prepare(
      'SELECT upstream, name FROM quotas WHERE (upstream, name) > (?, ?) ORDER BY upstream, name LIMIT 1 OFFSET ?',
    );
    this.#removeEnded = db.prepare(
      `DELETE FROM quotas WHERE (upstream, name) > (?, ?) AND (? IS NULL OR (upstream, name) <= (?, ?))
       AND instr(name, ' ') > 0
       AND CASE WHEN json_valid(counts) THEN coalesce(json_extract(counts, '$[#-1][0]'), 0) ELSE 0 END < ?`,
    );
  }

  /**
   * Removes the counts of single clients that were not seen for longer than any period, among the next rows. A count in memory is stored
   * again with its next request. @param at now
   */
  removeEnded(at: EpochMillis): void {
    if (!this.#db.isOpen) return;
    const { upstream, name } = this.#cleanedUpTo;
    try {
      const last = this.#findStepEnd.get(upstream, name, ROWS_AT_ONCE - 1);
      const end = last && { upstream: String(last['upstream']), name: String(last['name']) };
      this.#removeEnded.run(
        upstream,
        name,
        end?.upstream ?? null,
        end?.upstream ?? null,
        end?.name ?? null,
        at - MAX_PERIOD,
      );
      this.#cleanedUpTo = end ?? FIRST_ROW;
    } catch (error) {
      this.#onFailure(error); // the next call tries these rows again
    }
  }

  load(upstream: string, name: string): StoredQuota | undefined {
    const row = this.#get.get(upstream, name);
    return row === undefined
      ? undefined
      : { period: String(row['period']), counts: parseCounts(String(row['counts'])) };
  }

  store(upstream: string, name: string, { period, counts }: StoredQuota): void {
    if (!this.#db.isOpen) return;
    try {
      this.#put.run(upstream, name, period, JSON.stringify(counts));
    } catch (error) {
      return this.#onFailure(error);
    }
    if (this.#hasFailed) this.#onProblem(undefined);
    this.#hasFailed = false;
  }

  storeTogether(write: () => void): void {
    if (!this.#db.isOpen || this.#db.isTransaction) return write();
    try {
      this.#db.exec('BEGIN IMMEDIATE');
    } catch (error) {
      this.#onFailure(error); // each is stored by itself
    }
    try {
      write();
    } finally {
      this.#endTransaction();
    }
  }

  #endTransaction(): void {
    try {
      if (this.#db.isTransaction) this.#db.exec('COMMIT');
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      this.#onFailure(error);
    }
  }

  #onFailure(error: unknown): void {
    if (!this.#hasFailed) this.#onProblem(error);
    this.#hasFailed = true;
  }

  onClose(upstream: string, name: string, write: () => void): void {
    this.#atEnd.set(JSON.stringify([upstream, name]), write);
  }

  forget(upstream: string, name: string): void {
    this.#atEnd.delete(JSON.stringify([upstream, name]));
  }

  /** Stores the exact counts. To be called before the database is closed. */
  close(): void {
    this.storeTogether(() => {
      for (const write of this.#atEnd.values()) write();
    });
    this.#atEnd.clear();
  }
}

/** Somebody may have edited the database: what is no count is left out. */
function parseCounts(text: string): StoredCount[] {
  const parsed = parseJson(text);
  if (!Array.isArray(parsed)) return [];
  return parsed.flatMap((part: unknown) => {
    const [start, count] = Array.isArray(part) ? (part as readonly unknown[]) : [];
    return Number.isFinite(start) && Number.isFinite(count) ? [[Number(start), Number(count)] as const] : [];
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
