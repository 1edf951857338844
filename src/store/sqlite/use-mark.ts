import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { crc32 } from 'node:zlib';

/**
 * While a process uses the database, `user_version` in its first page is other than 0, also on the disk. So the next process knows that
 * there has to be a write-ahead log.
 */
export interface UseMark {
  /** Each commit was synced. */
  readonly isSynced: boolean;
  /** A digest of the id of the system's boot; 0 if it has none. If it is the same, no power was lost since. */
  readonly boot: number;
}

/** The format of a database file: https://sqlite.org/fileformat.html */
const DATABASE_HEADER_BYTES = 100;
const USER_VERSION_AT = 60;
const FORMAT = 'SQLite format 3\0';
const IN_USE = 1;
const SYNCED = 2;

export function encodeMark({ isSynced, boot }: UseMark): number {
  return boot | (isSynced ? SYNCED : 0) | IN_USE;
}

/**
 * Reads the mark without SQLite, and so without the write-ahead log. Not while this process has the database open: to close the file
 * would end SQLite's locks.
 * @returns 'empty' if there is nothing in the file; undefined if it has no mark
 */
export function readMark(file: string): UseMark | 'empty' | undefined {
  const header = Buffer.alloc(DATABASE_HEADER_BYTES);
  const handle = openSync(file, 'r');
  try {
    if (readSync(handle, header) === 0) return 'empty';
  } finally {
    closeSync(handle);
  }
  const value = header.readInt32BE(USER_VERSION_AT);
  if (header.toString('latin1', 0, FORMAT.length) !== FORMAT || value === 0) return undefined;
  return { isSynced: (value & SYNCED) !== 0, boot: value & ~(SYNCED | IN_USE) };
}

export function presentBoot(): number {
  try {
    return crc32(readFileSync('/proc/sys/kernel/random/boot_id')) & ~(SYNCED | IN_USE);
  } catch {
    return 0; // not Linux
  }
}
