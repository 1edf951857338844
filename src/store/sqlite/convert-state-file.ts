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
import { platform } from 'node:os';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Millis } from '../../core/scalars.ts';
import { makePrivate } from './make-private.ts';
import { describeLoss, StateDatabaseError } from './state-database-error.ts';

/** The table of learned state: one row. */
export const LEARNED_TABLE =
  'CREATE TABLE IF NOT EXISTS learned (id INTEGER PRIMARY KEY CHECK (id = 1), state TEXT NOT NULL) STRICT';

/**
 * Puts a database in the place of the state file of an earlier version, which is kept as `….json`; does nothing for any other file.
 * The database has the learned state before it takes that place in one step. If the process ends before, the next one begins anew.
 * @param timeout how long it waits for another process that converts the same file
 * @throws StateDatabaseError, or an error of SQLite or node:fs
 */
export function convertStateFile(file: string, timeout: Millis): void {
  if (!isStateFile(file)) return;
  const path = realpathSync(file);
  // Otherwise this process could replace the database that another one has made meanwhile, and stores keys in.
  try {
    withLock(`${path}.lock`, timeout, () => {
      if (isStateFile(path)) convert(path);
    });
  } catch (error) {
    if (isStateFile(path)) throw error; // otherwise another process has converted it, and removed the lock
  }
}

/** The end of the process releases the lock. Once the file is converted, nobody needs the lock, so it is removed. */
function withLock(file: string, timeout: Millis, run: () => void): void {
  makePrivate(file);
  const lock = new DatabaseSync(file, { timeout });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    run();
    rmSync(file, { force: true });
  } finally {
    lock.close();
  }
}

function convert(path: string): void {
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

function isStateFile(file: string): boolean {
  return firstByteOf(file) === '{';
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
  if (platform() === 'win32') return; // it refuses to sync a folder (EPERM)
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
