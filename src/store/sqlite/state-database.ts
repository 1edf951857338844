import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import type { Millis } from '../../core/scalars.ts';
import { convertStateFile, LEARNED_TABLE } from './convert-state-file.ts';
import { checkLog } from './check-log.ts';
import { checkTables } from './check-tables.ts';
import { makePrivate } from './make-private.ts';
import { describeLoss, StateDatabaseError, toDatabaseError } from './state-database-error.ts';
import { encodeMark, presentBoot } from './use-mark.ts';

/** The layout of the tables. */
const LAYOUT = 1;
const SECRET_BYTES = 32;
/** Another process may hold the file for so long: an earlier one that is ending. */
const BUSY_TIMEOUT: Millis = 5000;

const TABLES = `
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
${LEARNED_TABLE};
CREATE TABLE IF NOT EXISTS writes (
  id INTEGER PRIMARY KEY, name BLOB NOT NULL, upstream TEXT NOT NULL, credential INTEGER NOT NULL, owner INTEGER NOT NULL,
  credential_header TEXT NOT NULL, body INTEGER, state TEXT NOT NULL, first_sent_at REAL NOT NULL, endpoint TEXT,
  final_for TEXT NOT NULL, unresolved_for TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS open_writes (
  request_id TEXT PRIMARY KEY, route TEXT NOT NULL, upstream TEXT NOT NULL, method TEXT NOT NULL, sent_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS responses (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, bytes BLOB NOT NULL, until REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS quotas (
  upstream TEXT NOT NULL, name TEXT NOT NULL, period TEXT NOT NULL, counts TEXT NOT NULL, PRIMARY KEY (upstream, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS worker_processes (pid INTEGER PRIMARY KEY, identity TEXT NOT NULL) STRICT;
`;

export interface StateDatabaseOptions {
  readonly file: string;
  /** `full`: each commit survives a loss of power; `normal`: only the end of this process. */
  readonly durability: 'full' | 'normal';
}

/** The database file of one proxy: learned state, and the keys of writes. Used by one process at a time. */
export class StateDatabase {
  readonly file: string;
  readonly db: DatabaseSync;
  /** For the hashes of clients and of keys: random, and the same for each process that uses the file. */
  readonly secret: Buffer;

  /** A loss of power has taken the last transactions, because `durability` was `normal`. */
  readonly hasLostEnd: boolean;
  readonly #mark: number;
  #isMarked = false;

  /** @throws StateDatabaseError */
  constructor({ file, durability }: StateDatabaseOptions) {
    this.file = file;
    this.#mark = encodeMark({ isSynced: durability === 'full', boot: presentBoot() });
    let db: DatabaseSync | undefined;
    let isLocked = false;
    try {
      convertStateFile(file, BUSY_TIMEOUT);
      const path = makePrivate(file);
      const { frames, hasLostEnd } = checkLog(path);
      this.hasLostEnd = hasLostEnd;
      checkTables(path, BUSY_TIMEOUT);
      this.db = db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT });
      // Only this process may use the file, so the index of the log stays in its memory.
      db.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = ${durability}`);
      this.#checkRecovery(path, frames);
      db.exec('PRAGMA auto_vacuum = NONE; BEGIN IMMEDIATE');
      isLocked = true;
      db.exec(TABLES);
      this.#checkLayout();
      this.secret = this.#readSecret();
      db.exec('COMMIT');
    } catch (error) {
      if (isLocked) this.close();
      else db?.close();
      throw toDatabaseError(file, error);
    }
    try {
      this.markInUse();
    } catch {
      // The disk is full, for example. It is marked before something is stored.
    }
  }

  /** Makes a later process expect the write-ahead log, from the first change on. */
  markInUse(): void {
    if (this.#isMarked) return;
    const mark = () => this.db.exec(`PRAGMA user_version = ${this.#mark}`);
    mark();
    this.#checkpoint();
    mark(); // begins the log anew: frames of an earlier one, of which an end was lost, would look like damage
    this.#isMarked = true;
  }

  readLearned(): string | undefined {
    const row = this.db.prepare('SELECT state FROM learned').get();
    return typeof row?.['state'] === 'string' ? row['state'] : undefined;
  }

  writeLearned(state: string): void {
    this.db
      .prepare('INSERT INTO learned VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state')
      .run(state);
  }

  /** Returns what `run` reads. @throws StateDatabaseError */
  read<T>(run: () => T): T {
    try {
      return run();
    } catch (error) {
      throw toDatabaseError(this.file, error);
    }
  }

  close(): void {
    const { db } = this;
    if (!db.isOpen) return;
    if (db.isTransaction) db.exec('ROLLBACK');
    // To close the database deletes its log, so the mark has to go first. Otherwise both stay for the next process.
    if (this.#removeMark()) db.close();
  }

  #removeMark(): boolean {
    const remove = () => this.db.exec('PRAGMA user_version = 0');
    try {
      remove();
    } catch {
      try {
        this.#checkpoint(); // makes room in the log of a full disk
        remove();
      } catch {
        return false;
      }
    }
    return true;
  }

  /** Copies all frames of the log into the file. @returns how many there are */
  #checkpoint(): number {
    return Number(this.db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()?.['log']);
  }

  #checkRecovery(path: string, frames: number): void {
    if (frames === 0) return;
    const recovered = this.#checkpoint();
    if (recovered >= frames) return;
    const what = `SQLite has read ${recovered} of ${frames} frames of ${path}-wal`;
    throw new StateDatabaseError(describeLoss(path, what));
  }

  #checkLayout(): void {
    const layout = this.#readMeta('layout');
    if (layout === undefined) this.#writeMeta('layout', LAYOUT);
    else if (layout !== LAYOUT) {
      throw new StateDatabaseError(
        `state.file: ${this.file} was written by another version of Tidegate (layout ${JSON.stringify(layout)})`,
      );
    }
  }

  #readSecret(): Buffer {
    const stored = this.#readMeta('secret');
    if (stored instanceof Uint8Array) return Buffer.from(stored);
    const secret = randomBytes(SECRET_BYTES);
    this.#writeMeta('secret', secret);
    return secret;
  }

  #readMeta(key: string): unknown {
    return this.db.prepare('SELECT value FROM meta WHERE key = ?').get(key)?.['value'];
  }

  #writeMeta(key: string, value: number | Buffer): void {
    this.db.prepare('INSERT INTO meta VALUES (?, ?)').run(key, value);
  }
}
