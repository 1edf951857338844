import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { StoredWrite } from '../../core/idempotency/key-journal.ts';

/**
 * Made with the first row. A version that does not know the table leaves rows behind whose id it may give to another write, so a row
 * counts only with the name and the credential of its write.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS key_owners (
  id INTEGER PRIMARY KEY, name BLOB NOT NULL, credential INTEGER NOT NULL, key_owner INTEGER NOT NULL, key_owner_kind INTEGER NOT NULL
) STRICT`;

const OF_SAME_WRITE =
  'writes.id = key_owners.id AND writes.name = key_owners.name AND writes.credential = key_owners.credential';

const STALE = `FROM key_owners WHERE NOT EXISTS (SELECT 1 FROM writes WHERE ${OF_SAME_WRITE})`;

const WITH_OWNERS = `SELECT writes.*, key_owner, key_owner_kind FROM writes LEFT JOIN key_owners ON ${OF_SAME_WRITE}`;

/** What names the clients of stored writes whose keys are their own. A database without such a write has the tables of earlier versions. */
export class StoredKeyOwners {
  readonly #db: DatabaseSync;
  #hasStaleRows = false;
  #put: StatementSync | undefined;
  #delete: StatementSync | undefined;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** A query of all writes, with `key_owner` and `key_owner_kind` if any of them may have these. */
  queryWrites(): string {
    const has = (query: string): boolean => this.#db.prepare(query).get() !== undefined;
    if (!has("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'key_owners'")) return 'SELECT * FROM writes';
    this.#hasStaleRows = has(`SELECT 1 ${STALE}`);
    return WITH_OWNERS;
  }

  /** A transaction begins. The one before may have failed, and with it the table that it has made. */
  begin(): void {
    this.#put = undefined;
  }

  /** @param id of a new row of writes */
  add(id: number, { name, credential, keyOwner, keyOwnerKind }: StoredWrite): void {
    if (keyOwner === undefined || keyOwnerKind === undefined) return;
    this.#put ??= this.#prepare();
    this.#put.run(id, Buffer.from(name, 'latin1'), credential, keyOwner, keyOwnerKind);
  }

  /** @param write stored with this id */
  remove(id: number, { keyOwner }: Pick<StoredWrite, 'keyOwner'>): void {
    if (keyOwner === undefined) return;
    this.#delete ??= this.#db.prepare('DELETE FROM key_owners WHERE id = ?');
    this.#delete.run(id);
  }

  #prepare(): StatementSync {
    this.#db.exec(TABLE);
    if (this.#hasStaleRows) this.#db.exec(`DELETE ${STALE}`);
    this.#hasStaleRows = false;
    return this.#db.prepare('INSERT OR REPLACE INTO key_owners VALUES (?, ?, ?, ?, ?)');
  }
}
