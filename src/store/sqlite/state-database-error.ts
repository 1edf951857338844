/** Why the database cannot be used, for a user. */
export class StateDatabaseError extends Error {}

/** A row of the database means nothing. */
export class UnreadableRow extends Error {}

/** Primary result codes of SQLite: https://sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** Names the file, and says what to do. */
export function toDatabaseError(file: string, error: unknown): StateDatabaseError {
  return error instanceof StateDatabaseError ? error : new StateDatabaseError(describe(file, error), { cause: error });
}

function describe(file: string, error: unknown): string {
  const code =
    error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode & 0xff : 0;
  if (code === SQLITE_BUSY) return `state.file: another process uses ${file}`;
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB) {
    return `state.file: ${file} is not a database, or is damaged; ${startWithout(file)}`;
  }
  if (error instanceof UnreadableRow) return `state.file: ${file} is damaged: ${error.message}; ${startWithout(file)}`;
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
    return `state.file: ${file} cannot be opened: its folder does not exist: create it first`;
  }
  return `state.file: ${file} cannot be opened: ${error instanceof Error ? error.message : String(error)}`;
}

/** @param what is wrong */
export function describeLoss(file: string, what: string): string {
  const both = `${file} and ${file}-wal`;
  return (
    `state.file: a part of what ${file} remembers is lost: ${what}; restore ${both} together from where they were, ` +
    'or move both away to start without all that they remember: repeats of the writes of the last days may then be sent again'
  );
}

function startWithout(file: string): string {
  return `move it away to start without what it remembers, together with ${file}-wal: repeats of earlier writes may then be sent again`;
}
