import type { StatementSync } from 'node:sqlite';
import type { ResponseStore } from '../../core/idempotency/response-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';
import type { GroupCommit, PendingChanges } from './group-commit.ts';

/** For all kept responses together: the file grows by no more. */
const MAX_BYTES = 256 * 1024 * 1024;

interface PendingResponse {
  readonly bytes: Buffer;
  readonly until: Millis;
}

export interface StoredResponsesOptions {
  readonly commit: GroupCommit;
  readonly wallClock: () => Millis;
  readonly maxBytes?: number;
}

/** Kept responses in a database. New ones evict the oldest. */
export class StoredResponses implements ResponseStore, PendingChanges {
  readonly #commit: GroupCommit;
  readonly #wallClock: () => Millis;
  readonly #maxBytes: number;
  /** Not stored yet; undefined: to be removed. */
  #changed = new Map<string, PendingResponse | undefined>();
  #bytes: number;
  /** Of the present transaction. */
  #appliedBytes = 0;
  #appliedEvictions = 0;
  #evicted = 0;
  readonly #get: StatementSync;
  readonly #put: StatementSync;
  readonly #delete: StatementSync;
  readonly #oldest: StatementSync;

  constructor({ commit, wallClock, maxBytes = MAX_BYTES }: StoredResponsesOptions) {
    const { db } = commit;
    this.#commit = commit;
    this.#wallClock = wallClock;
    this.#maxBytes = maxBytes;
    this.#get = db.prepare('SELECT bytes, until FROM responses WHERE id = ?');
    this.#put = db.prepare('INSERT INTO responses (id, bytes, until) VALUES (?, ?, ?)');
    this.#delete = db.prepare('DELETE FROM responses WHERE id = ? RETURNING length(bytes) AS size');
    this.#oldest = db.prepare('SELECT id, until FROM responses ORDER BY number LIMIT 1');
    this.#bytes = Number(db.prepare('SELECT coalesce(sum(length(bytes)), 0) AS size FROM responses').get()?.['size']);
    commit.add(this);
  }

  get bounds(): readonly ResourceBound[] {
    return [{ name: 'kept_responses', used: this.#bytes / this.#maxBytes, reached: this.#evicted }];
  }

  read(id: string, onRead: (bytes: Buffer | undefined) => void): void {
    if (this.#changed.has(id)) return onRead(this.#changed.get(id)?.bytes);
    let bytes: Buffer | undefined;
    try {
      const { bytes: stored, until } = this.#get.get(id) ?? {};
      if (stored instanceof Uint8Array && Number(until) > this.#wallClock()) bytes = Buffer.from(stored);
    } catch {
      // A damaged database, for example: the repeat goes to the upstream.
    }
    onRead(bytes);
  }

  keep(id: string, bytes: Buffer, lifetime: Millis, onKept: () => void): void {
    this.#changed.set(id, { bytes, until: this.#wallClock() + lifetime });
    this.#commit.whenStored(onKept);
  }

  remove(id: string): void {
    this.#changed.set(id, undefined);
    this.#commit.request();
  }

  get isEmpty(): boolean {
    return this.#changed.size === 0;
  }

  apply(): void {
    this.#appliedBytes = this.#bytes;
    this.#appliedEvictions = 0;
    for (const [id, response] of this.#changed) {
      this.#deleteRow(id);
      if (response === undefined) continue;
      this.#put.run(id, response.bytes, response.until);
      this.#appliedBytes += response.bytes.length;
    }
    this.#evictOldest();
  }

  onStored(): void {
    this.#bytes = this.#appliedBytes;
    this.#evicted += this.#appliedEvictions;
    this.#changed = new Map();
  }

  /** Removes the oldest while there are too many bytes, and those whose time is over. */
  #evictOldest(): void {
    const now = this.#wallClock();
    for (;;) {
      const row = this.#oldest.get();
      if (row === undefined) return;
      const isOver = Number(row['until']) <= now;
      if (!isOver && this.#appliedBytes <= this.#maxBytes) return;
      if (!isOver) this.#appliedEvictions += 1;
      this.#deleteRow(String(row['id']));
    }
  }

  #deleteRow(id: string): void {
    const size = this.#delete.get(id)?.['size'];
    if (size !== undefined) this.#appliedBytes -= Number(size);
  }
}
