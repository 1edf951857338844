import type { SQLOutputValue, StatementSync } from 'node:sqlite';
import {
  MAX_EXPIRED,
  MAX_PER_WRITE,
  MAX_RESPONSES,
  MAX_STORED_BYTES,
  type ResponseBounds,
  type ResponseStore,
  usedOfBounds,
  writeOfResponse,
} from '../../core/idempotency/response-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';
import type { GroupCommit, PendingChanges } from './group-commit.ts';

/** What a row and its index entry take besides its bytes, about. */
const ROW_BYTES = 512;

/** Rows that a transaction removes at most, unless it stores more than it removes. Later steps remove what is left. */
const MAX_REMOVED = MAX_EXPIRED;

interface PendingResponse {
  readonly bytes: Buffer;
  readonly until: Millis;
}

/** What is not stored yet for one write. */
interface PendingWrite {
  /** The stored responses are to be removed. */
  isRemoved: boolean;
  /** The responses to be stored, by id. */
  readonly kept: Map<string, PendingResponse>;
}

export interface StoredResponsesOptions extends Partial<ResponseBounds> {
  readonly commit: GroupCommit;
  /** A time of later processes too, which a step of the wall clock does not change: see `StoredWrites.steadyTime`. */
  readonly steadyTime: () => Millis;
}

/** What the rows take. */
interface RowTotals {
  readonly count: number;
  readonly bytes: number;
}

/** Kept responses in a database. New ones evict the oldest. */
export class StoredResponses implements ResponseStore, PendingChanges {
  readonly #commit: GroupCommit;
  readonly #steadyTime: () => Millis;
  readonly #max: ResponseBounds;
  /** The changes that are not stored yet, by write. */
  #pending = new Map<string, PendingWrite>();
  #stored: RowTotals;
  /** The totals within the present transaction. */
  #applied: RowTotals;
  #appliedEvictions = 0;
  #evicted = 0;
  /** The present transaction leaves rows that are to be removed. */
  #leavesMore = false;
  /** The step that removes such rows. */
  #nextStep: 'none' | 'scheduled' | 'due' = 'none';
  readonly #get: StatementSync;
  readonly #put: StatementSync;
  readonly #delete: StatementSync;
  readonly #hasAny: StatementSync;
  readonly #deleteAll: StatementSync;
  readonly #countOfWrite: StatementSync;
  readonly #oldest: StatementSync;

  constructor({ commit, steadyTime, maxCount = MAX_RESPONSES, maxBytes = MAX_STORED_BYTES }: StoredResponsesOptions) {
    const { db } = commit;
    this.#commit = commit;
    this.#steadyTime = steadyTime;
    this.#max = { maxCount, maxBytes };
    this.#get = db.prepare('SELECT bytes, until FROM responses WHERE id = ?');
    this.#put = db.prepare('INSERT INTO responses (id, bytes, until) VALUES (?, ?, ?)');
    this.#delete = db.prepare('DELETE FROM responses WHERE id = ? RETURNING length(bytes) AS size');
    // Ids of a write are between its name with the separator and with the character after it.
    const ofWrite = "id = ?1 OR (id > ?1 || '.' AND id < ?1 || '/')";
    this.#hasAny = db.prepare(`SELECT 1 FROM responses WHERE ${ofWrite} LIMIT 1`);
    this.#deleteAll = db.prepare(`DELETE FROM responses WHERE ${ofWrite} RETURNING length(bytes) AS size`);
    this.#countOfWrite = db.prepare(
      `SELECT count(*) AS count FROM (SELECT 1 FROM responses WHERE ${ofWrite} LIMIT ${MAX_PER_WRITE})`,
    );
    this.#oldest = db.prepare('SELECT id, until FROM responses ORDER BY number LIMIT 1');
    const totals = db.prepare('SELECT count(*) AS count, coalesce(sum(length(bytes)), 0) AS size FROM responses').get();
    const count = Number(totals?.['count']);
    this.#stored = this.#applied = { count, bytes: count * ROW_BYTES + Number(totals?.['size']) };
    commit.add(this);
    if (this.#findRemovable() !== undefined) this.#scheduleStep();
  }

  get bounds(): readonly ResourceBound[] {
    return [{ name: 'kept_responses', used: this.#usedBy(this.#stored), reached: this.#evicted }];
  }

  read(id: string, onRead: (bytes: Buffer | undefined, keptFor: Millis) => void): void {
    const pending = this.#pending.get(writeOfResponse(id));
    const response = pending?.kept.get(id);
    const now = this.#steadyTime();
    if (response !== undefined) return onRead(response.bytes, response.until - now);
    if (pending?.isRemoved === true) return onRead(undefined, 0);
    const { bytes: stored, until } = this.#tryGet(this.#get, id) ?? {};
    const isValid = stored instanceof Uint8Array && Number(until) > now;
    onRead(isValid ? Buffer.from(stored) : undefined, Number(until) - now);
  }

  keep(id: string, bytes: Buffer, lifetime: Millis, onKept: () => void): void {
    this.#pendingOf(writeOfResponse(id)).kept.set(id, { bytes, until: this.#steadyTime() + lifetime });
    this.#commit.whenStored(onKept);
  }

  remove(write: string): void {
    this.#pending.get(write)?.kept.clear();
    if (this.#tryGet(this.#hasAny, write) === undefined) return;
    this.#pendingOf(write).isRemoved = true;
    this.#commit.request();
  }

  get isEmpty(): boolean {
    return this.#pending.size === 0 && this.#nextStep !== 'due';
  }

  apply(): void {
    this.#applied = this.#stored;
    this.#appliedEvictions = 0;
    for (const [write, { isRemoved, kept }] of this.#pending) {
      if (isRemoved) this.#subtract(this.#deleteAll.all(write));
      for (const [id, { bytes, until }] of kept) {
        this.#deleteRow(id);
        if (Number(this.#countOfWrite.get(write)?.['count']) >= MAX_PER_WRITE) continue;
        this.#put.run(id, bytes, until);
        this.#add(1, ROW_BYTES + bytes.length);
      }
    }
    this.#leavesMore = this.#removeOldest();
  }

  onStored(): void {
    this.#stored = this.#applied;
    this.#evicted += this.#appliedEvictions;
    this.#pending = new Map();
    if (this.#nextStep === 'scheduled') return;
    this.#nextStep = 'none';
    if (this.#leavesMore) this.#scheduleStep();
  }

  /** Drops responses instead of holding them until the database recovers. Removals stay: they are about earlier writes. */
  onFailed(): void {
    for (const [write, { isRemoved, kept }] of this.#pending) {
      kept.clear();
      if (!isRemoved) this.#pending.delete(write);
    }
  }

  #pendingOf(write: string): PendingWrite {
    const pending = this.#pending.get(write) ?? { isRemoved: false, kept: new Map<string, PendingResponse>() };
    this.#pending.set(write, pending);
    return pending;
  }

  /** Undefined if there is no row, or the database is damaged, for example: then repeats go to the upstream. */
  #tryGet(statement: StatementSync, parameter: string): Record<string, SQLOutputValue> | undefined {
    try {
      return statement.get(parameter);
    } catch {
      return undefined;
    }
  }

  #scheduleStep(): void {
    this.#nextStep = 'scheduled';
    this.#commit.nextStep(() => {
      this.#nextStep = 'due';
      this.#commit.request();
    });
  }

  /** Removes the oldest while there are too many, and those whose time is over. @returns whether some are left */
  #removeOldest(): boolean {
    for (let removed = 0; ; removed += 1) {
      const row = this.#findRemovable();
      if (row === undefined) return false;
      if (removed >= MAX_REMOVED && this.#usedBy(this.#applied) <= Math.max(1, this.#usedBy(this.#stored))) return true;
      if (!row.isOver) this.#appliedEvictions += 1;
      this.#deleteRow(row.id);
    }
  }

  /** The oldest row, if there are too many or its time is over. */
  #findRemovable(): { readonly id: string; readonly isOver: boolean } | undefined {
    const row = this.#oldest.get();
    if (row === undefined) return undefined;
    const isOver = Number(row['until']) <= this.#steadyTime();
    return isOver || this.#usedBy(this.#applied) > 1 ? { id: String(row['id']), isOver } : undefined;
  }

  #deleteRow(id: string): void {
    this.#subtract(this.#delete.all(id));
  }

  #subtract(deleted: readonly Readonly<Record<string, SQLOutputValue>>[]): void {
    for (const { size } of deleted) this.#add(-1, -(ROW_BYTES + Number(size)));
  }

  #add(count: number, bytes: number): void {
    this.#applied = { count: this.#applied.count + count, bytes: this.#applied.bytes + bytes };
  }

  #usedBy({ count, bytes }: RowTotals): number {
    return usedOfBounds(this.#max, count, bytes);
  }
}
