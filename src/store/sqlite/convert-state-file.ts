import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makePrivate } from './make-private.ts';
import { describeLoss, StateDatabaseError } from './state-database-error.ts';

/** The table of learned state: one row. */
export const LEARNED_TABLE =
  'CREATE TABLE IF NOT EXISTS learned (id INTEGER PRIMARY KEY CHECK (id = 1), state TEXT NOT NULL) STRICT';

/**
 * Puts a database in the place of the state file of an earlier version, which is kept as `….json`; does nothing for any other file.
 * The database has the learned state before it takes that place in one step. If the process ends before, the next one begins anew.
 * @throws StateDatabaseError, or an error of SQLite or node:fs
 */
export function convertStateFile(file: string): void {
  if (firstByteOf(file) !== '{') return;
  const path = realpathSync(file);
  if (existsSync(`${path}-wal`)) {
    throw new StateDatabaseError(describeLoss(path, `${path} is a state file, but ${path}-wal is there`));
  }
  const next = `${path}.new`;
  for (const each of [next, `${next}-journal`]) rmSync(each, { force: true });
  makePrivate(next);
  const db = new DatabaseSync(next);
  try {
    db.exec(`PRAGMA synchronous = FULL; BEGIN; ${LEARNED_TABLE}`);
    db.prepare('INSERT INTO learned VALUES (1, ?)').run(readFileSync(path, 'utf8'));
    db.exec('COMMIT');
  } finally {
    db.close();
  }
  copyFileSync(path, `${path}.json`);
  renameSync(next, path);
  syncFolder(dirname(path)); // otherwise, a log of the database could outlive its name
}

function firstByteOf(file: string): string | undefined {
  let handle: number;
  try {
    handle = openSync(file, 'r');
  } catch {
    return undefined; // the database reports why
  }
  try {
    const byte = Buffer.alloc(1);
    return readSync(handle, byte) === 0 ? undefined : byte.toString('latin1');
  } finally {
    closeSync(handle);
  }
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
