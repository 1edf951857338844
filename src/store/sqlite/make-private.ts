import { chmodSync, closeSync, openSync, realpathSync, statSync } from 'node:fs';

const OWNER_ONLY = 0o600;

/**
 * Makes a database readable for its owner only. SQLite makes its files readable for others, and keeps the mode of existing ones.
 * @returns its path without symbolic links: SQLite keeps the log beside that
 */
export function makePrivate(file: string): string {
  closeSync(openSync(file, 'a', OWNER_ONLY));
  const path = realpathSync(file);
  // SQLite gives new ones the mode of the database.
  for (const each of [path, `${path}-wal`, `${path}-shm`]) restrict(each);
  return path;
}

function restrict(file: string): void {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile() || (stats.mode & 0o777) === OWNER_ONLY) return;
  try {
    chmodSync(file, OWNER_ONLY);
  } catch (error) {
    const isOfOther = error instanceof Error && 'code' in error && error.code === 'EPERM';
    if (!isOfOther) throw error; // only its owner can change its mode, and decides on it
  }
}
