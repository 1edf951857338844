import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { CredentialList } from '../../core/idempotency/credential-list.ts';
import { NO_CREDENTIALS } from '../../core/idempotency/credential-list.ts';
import type { KeyJournal, StoredWrite } from '../../core/idempotency/key-journal.ts';
import { toStored } from '../../core/idempotency/key-journal.ts';
import type { KeyedWrite } from '../../core/idempotency/keyed-write.ts';
import type { Clock, Millis } from '../../core/scalars.ts';

export interface StoredWritesOptions {
  readonly db: DatabaseSync;
  readonly clock: Clock;
  readonly wallClock: () => Millis;
  /** Calls `run` after this time; 0: at the end of this turn of the event loop. */
  readonly schedule: (delay: Millis, run: () => void) => void;
  /** Changes could not be stored, or can be stored again (undefined). */
  readonly onProblem: (error: unknown) => void;
}

/** After a failure, changes are stored again so much later. */
const RETRY_DELAY: Millis = 1000;

/** Writes with idempotency keys in a database. The changes of a turn of the event loop are one transaction. */
export class StoredWrites implements KeyJournal {
  readonly #options: StoredWritesOptions;
  readonly #changed = new Set<KeyedWrite>();
  #waiting: ((isStored: boolean) => void)[] = [];
  #isScheduled = false;
  #hasFailed = false;
  #lastId = 0;
  readonly #put: StatementSync;
  readonly #delete: StatementSync;

  constructor(options: StoredWritesOptions) {
    this.#options = options;
    this.#put =
      options.db.prepare(`INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
      body = excluded.body, state = excluded.state, first_sent_at = excluded.first_sent_at, endpoint = excluded.endpoint,
      final_for = excluded.final_for, unresolved_for = excluded.unresolved_for`);
    this.#delete = options.db.prepare('DELETE FROM writes WHERE id = ?');
  }

  /** What earlier processes knew, the oldest first. Times are on the clock of this process. */
  load(): (readonly [id: number, write: StoredWrite])[] {
    const { db, clock, wallClock } = this.#options;
    const now = clock.now();
    const offset = wallClock() - now;
    return db
      .prepare('SELECT * FROM writes ORDER BY first_sent_at, id')
      .all()
      .map((row) => {
        const id = Number(row['id']);
        this.#lastId = Math.max(this.#lastId, id);
        return [id, { ...toWrite(row), firstSentAt: Math.min(now, Number(row['first_sent_at']) - offset) }];
      });
  }

  onChange(write: KeyedWrite): void {
    this.#changed.add(write);
    this.#schedule(0);
  }

  whenStored(run: (isStored: boolean) => void): void {
    this.#waiting.push(run);
    this.#schedule(0);
  }

  /** Stores all changes so far. */
  flush(): void {
    this.#isScheduled = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    const isStored = this.#store();
    for (const run of waiting) run(isStored);
    if (!isStored) this.#schedule(RETRY_DELAY);
  }

  #schedule(delay: Millis): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#options.schedule(delay, () => this.flush());
  }

  #store(): boolean {
    if (this.#changed.size === 0) return true;
    const { db, onProblem } = this.#options;
    try {
      db.exec('BEGIN IMMEDIATE');
      for (const write of this.#changed) this.#storeWrite(write);
      db.exec('COMMIT');
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      if (!this.#hasFailed) onProblem(error);
      this.#hasFailed = true;
      return false;
    }
    this.#changed.clear();
    if (this.#hasFailed) onProblem(undefined);
    this.#hasFailed = false;
    return true;
  }

  #storeWrite(write: KeyedWrite): void {
    const stored = toStored(write);
    if (stored === undefined) {
      if (write.journalId > 0) this.#delete.run(write.journalId);
      return;
    }
    if (write.journalId === 0) write.journalId = this.#lastId += 1;
    const { clock, wallClock } = this.#options;
    const { name, upstream, credential, owner, credentialHeader, body, state, firstSentAt, endpoint } = stored;
    this.#put.run(
      ...[
        write.journalId,
        Buffer.from(name, 'latin1'),
        upstream,
        credential,
        owner,
        credentialHeader,
        body ?? null,
        state,
      ],
      ...[firstSentAt + wallClock() - clock.now(), endpoint ?? null],
      ...[JSON.stringify(stored.finalFor), JSON.stringify(stored.unresolvedFor)],
    );
  }
}

function toWrite(row: Record<string, unknown>): Omit<StoredWrite, 'firstSentAt'> {
  const { name, upstream, credential, owner, credential_header, body, state, endpoint, final_for, unresolved_for } =
    row;
  return {
    name: name instanceof Uint8Array ? Buffer.from(name).toString('latin1') : '',
    upstream: String(upstream),
    credential: Number(credential),
    owner: Number(owner),
    credentialHeader: String(credential_header),
    body: typeof body === 'number' ? body : undefined,
    state: state === 'answered' ? state : 'unresolved',
    endpoint: typeof endpoint === 'string' ? endpoint : undefined,
    finalFor: toCredentials(final_for),
    unresolvedFor: toCredentials(unresolved_for),
  };
}

function toCredentials(text: unknown): CredentialList {
  const parsed: unknown = JSON.parse(String(text));
  if (typeof parsed === 'number') return parsed;
  return Array.isArray(parsed) ? parsed.filter((each) => typeof each === 'number') : NO_CREDENTIALS;
}
