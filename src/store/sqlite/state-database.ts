import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import type { Millis } from '../../core/scalars.ts';
import { StateDatabaseError, toDatabaseError } from './state-database-error.ts';
import { makePrivate } from './make-private.ts';
import { takeStateFile } from './take-state-file.ts';

/** The layout of the tables. */
const LAYOUT = 1;
const SECRET_BYTES = 32;
/** Another process may hold the file for so long: an earlier one that is ending. */
const BUSY_TIMEOUT: Millis = 5000;

const TABLES = `
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS learned (id INTEGER PRIMARY KEY CHECK (id = 1), state TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS writes (
  id INTEGER PRIMARY KEY, name BLOB NOT NULL, upstream TEXT NOT NULL, credential INTEGER NOT NULL, owner INTEGER NOT NULL,
  credential_header TEXT NOT NULL, body INTEGER, state TEXT NOT NULL, first_sent_at REAL NOT NULL, endpoint TEXT,
  final_for TEXT NOT NULL, unresolved_for TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS open_writes (
  request_id TEXT PRIMARY KEY, route TEXT NOT NULL, upstream TEXT NOT NULL, method TEXT NOT NULL, sent_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
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

  /** @throws StateDatabaseError */
  constructor({ file, durability }: StateDatabaseOptions) {
    this.file = file;
    try {
      const earlier = takeStateFile(file);
      makePrivate(file);
      this.db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT });
      // Only this process may use the file, so the index of the log stays in its memory.
      this.db.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = ${durability}`);
      this.db.exec('PRAGMA auto_vacuum = NONE; BEGIN IMMEDIATE');
      this.db.exec(TABLES);
      this.#checkLayout();
      this.secret = this.#readSecret();
      if (earlier !== undefined) this.writeLearned(earlier);
      this.db.exec('COMMIT');
    } catch (error) {
      throw toDatabaseError(file, error);
    }
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
    if (this.db.isOpen) this.db.close();
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
