import { existsSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { Millis } from '../../core/scalars.ts';

/**
 * Reads all tables, if there is a write-ahead log, as the log and the file have them together. Changes neither: a connection that may
 * write moves the log into the file and deletes it, even if it finds the file damaged. Call it before SQLite opens the file to write.
 * The bytes of kept responses are not read, because they may take gigabytes.
 * @param file not a symbolic link
 * @param timeout how long it waits for another process that uses the file
 * @throws an error of SQLite
 */
export function checkTables(file: string, timeout: Millis): void {
  const hasLog = (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (!hasLog) return;
  const index = `${file}-shm`;
  const hadIndex = existsSync(index);
  const db = new DatabaseSync(file, { readOnly: true, timeout });
  try {
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    for (const { name } of tables) readTable(db, String(name));
  } finally {
    db.close();
    if (!hadIndex) rmSync(index, { force: true });
  }
}

function readTable(db: DatabaseSync, table: string): void {
  const columns = db.prepare('SELECT name FROM pragma_table_info(?)').all(table);
  const lengths = columns.map(({ name }) => `total(length("${String(name)}"))`);
  db.prepare(`SELECT ${lengths.join(', ')} FROM "${table}" NOT INDEXED`).get();
}
