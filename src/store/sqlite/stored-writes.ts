import type { StatementSync } from 'node:sqlite';
import type { CredentialList } from '../../core/idempotency/credential-list.ts';
import { NO_CREDENTIALS } from '../../core/idempotency/credential-list.ts';
import type { KeyJournal, StoredWrite } from '../../core/idempotency/key-journal.ts';
import { toStored } from '../../core/idempotency/key-journal.ts';
import type { KeyedWrite } from '../../core/idempotency/keyed-write.ts';
import type { Millis } from '../../core/scalars.ts';
import type { GroupCommit, PendingChanges } from './group-commit.ts';
import { UnreadableRow } from './state-database-error.ts';
import { StoredKeyOwners } from './stored-key-owners.ts';
import { type Clocks, WallClockSteps } from './wall-clock-steps.ts';

/** Rows of the table of writes, by state. */
export type StoredWriteCounts = Readonly<Record<StoredWrite['state'], number>>;

/** A row that the present transaction stores. */
interface AppliedRow {
  readonly id: number;
  /** Undefined if it is deleted. */
  readonly stored: StoredWrite | undefined;
}

/** What may change in the row of an unresolved write. */
type UnresolvedRow = Pick<StoredWrite, 'firstSentAt' | 'endpoint' | 'body'>;

export interface StoredWritesOptions extends Clocks {
  readonly commit: GroupCommit;
  /** See `KeyJournal`. */
  readonly onDecidedLocally?: (upstream: string) => void;
}

/**
 * A write is stored as sent when its key is granted, before the first byte. If it is sent within this time, the exact time of the send
 * is stored with the next commit and causes none: until then, the stored time is too early, so the key expires too early.
 */
const MAX_EARLIER: Millis = 1000;

/** Surplus rows that a step deletes at most. */
const MAX_SURPLUS = 1000;

/** In `meta`: what to add to the stored times for times of the wall clock. So a step of that clock shifts all of them at once. */
const SHIFT = 'clock_shift';

/** Writes with idempotency keys in a database. They have the age that this process sees, also after the wall clock was set. */
export class StoredWrites implements KeyJournal, PendingChanges {
  readonly #options: StoredWritesOptions;
  readonly #changed = new Set<KeyedWrite>();
  /** Stored writes that later steps delete, the oldest last. */
  #surplus: KeyedWrite[] = [];
  /** What the present transaction stores. */
  #applied = new Map<KeyedWrite, AppliedRow>();
  /** The rows of unresolved writes that this process has stored. */
  readonly #unresolved = new Map<KeyedWrite, UnresolvedRow>();
  #lastId = 0;
  readonly #steps: WallClockSteps;
  #shiftAtStart: Millis = 0;
  #storedShift: Millis = 0;
  #appliedShift: Millis = 0;
  readonly #putShift: StatementSync;
  readonly #counts: Record<StoredWrite['state'], number> = { unresolved: 0, answered: 0 };
  readonly #put: StatementSync;
  readonly #delete: StatementSync;
  readonly #owners: StoredKeyOwners;

  constructor(options: StoredWritesOptions) {
    this.#options = options;
    this.#steps = new WallClockSteps(options);
    const { db } = options.commit;
    this.#putShift = db.prepare(
      'INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    );
    this.#put =
      db.prepare(`INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
      body = excluded.body, state = excluded.state, first_sent_at = excluded.first_sent_at, endpoint = excluded.endpoint,
      final_for = excluded.final_for, unresolved_for = excluded.unresolved_for`);
    this.#delete = db.prepare('DELETE FROM writes WHERE id = ?');
    this.#owners = new StoredKeyOwners(db);
    options.commit.add(this);
  }

  /** What earlier processes knew, the oldest first. Times are on the clock of this process. @throws UnreadableRow */
  load(): (readonly [id: number, write: StoredWrite])[] {
    const { commit, clock, wallClock } = this.#options;
    const shift = Number(commit.db.prepare('SELECT value FROM meta WHERE key = ?').get(SHIFT)?.['value'] ?? 0);
    this.#shiftAtStart = this.#storedShift = shift;
    const now = clock.now();
    const offset = wallClock() - now - shift;
    const rows = commit.db.prepare(`${this.#owners.queryWrites()} ORDER BY first_sent_at, writes.id`);
    rows.setReadBigInts(true); // one integer beyond 2^53 would make it throw
    return Array.from(rows.iterate(), (row) => {
      const id = Number(row['id']);
      this.#lastId = Math.max(this.#lastId, id);
      const write = { ...readWrite(row, id), firstSentAt: Math.min(now, Number(row['first_sent_at']) - offset) };
      this.#counts[write.state] += 1;
      return [id, write];
    });
  }

  onChange(write: KeyedWrite): void {
    const present = toStored(write);
    const row = this.#unresolved.get(write);
    const isSame = row !== undefined && present !== undefined && isSameRow(row, present);
    if (isSame && present.firstSentAt === row.firstSentAt) return;
    // While nothing can be stored, writes that are refused must not pile up here.
    if (write.journalId === 0 && present === undefined) this.#changed.delete(write);
    else this.#changed.add(write);
    if (!isSame || !isSlightlyLater(present.firstSentAt, row.firstSentAt)) this.#options.commit.request();
  }

  onSurplus(writes: readonly KeyedWrite[]): void {
    this.#surplus = writes.toReversed();
    this.#removeSurplus();
  }

  whenStored(run: (isStored: boolean) => void): void {
    this.#options.commit.whenStored(run);
  }

  onDecidedLocally(upstream: string): void {
    this.#options.onDecidedLocally?.(upstream);
  }

  /** What the database holds. */
  get counts(): StoredWriteCounts {
    return { ...this.#counts };
  }

  /** Writes whose changes wait. */
  get size(): number {
    return this.#changed.size;
  }

  get isEmpty(): boolean {
    return this.size === 0 && this.clockShift() === this.#storedShift;
  }

  apply(): void {
    this.#applied = new Map();
    this.#owners.begin();
    this.#appliedShift = this.clockShift();
    if (this.#appliedShift !== this.#storedShift) this.#putShift.run(SHIFT, this.#appliedShift);
    for (const write of this.#changed) this.#storeWrite(write);
  }

  onStored(): void {
    for (const [write, { id, stored }] of this.#applied) {
      const state = stored?.state;
      if (write.journaledAs !== undefined) this.#counts[write.journaledAs] -= 1;
      if (state !== undefined) this.#counts[state] += 1;
      write.journalId = state === undefined ? 0 : id;
      write.journaledAs = state;
      if (stored?.state === 'unresolved') this.#unresolved.set(write, toRow(stored));
      else this.#unresolved.delete(write);
    }
    this.#applied.clear();
    this.#changed.clear();
    this.#storedShift = this.#appliedShift;
  }

  /** The wall clock without its steps, also those in earlier processes: the origin of all stored times. */
  steadyTime(): Millis {
    return this.#options.wallClock() - this.clockShift();
  }

  /** The sum of the steps of the wall clock: what to add to `steadyTime` for the wall clock. */
  clockShift(): Millis {
    return this.#shiftAtStart + this.#steps.total();
  }

  readonly #removeSurplus = (): void => {
    for (const write of this.#surplus.splice(-MAX_SURPLUS)) this.onChange(write);
    if (this.#surplus.length > 0) this.#options.commit.nextStep(this.#removeSurplus);
  };

  #storeWrite(write: KeyedWrite): void {
    const stored = toStored(write);
    let id = write.journalId;
    if (stored === undefined) {
      if (id === 0) return;
      this.#delete.run(id);
      this.#owners.remove(id, write);
      this.#applied.set(write, { id, stored });
      return;
    }
    const isNew = id === 0;
    if (isNew) id = this.#lastId += 1;
    this.#applied.set(write, { id, stored });
    const { clock, wallClock } = this.#options;
    const { name, upstream, credential, owner, credentialHeader, body, state, firstSentAt, endpoint } = stored;
    this.#put.run(
      ...[id, Buffer.from(name, 'latin1'), upstream, credential, owner, credentialHeader, body ?? null, state],
      ...[firstSentAt + wallClock() - clock.now() - this.#appliedShift, endpoint ?? null],
      ...[JSON.stringify(stored.finalFor), JSON.stringify(stored.unresolvedFor)],
    );
    if (isNew) this.#owners.add(id, stored);
  }
}

function toRow({ firstSentAt, endpoint, body }: StoredWrite): UnresolvedRow {
  return { firstSentAt, endpoint, body };
}

/** Whether the row needs no change but that of its time. */
function isSameRow(row: UnresolvedRow, { state, endpoint, body }: StoredWrite): boolean {
  return state === 'unresolved' && endpoint === row.endpoint && body === row.body;
}

function isSlightlyLater(time: Millis, stored: Millis): boolean {
  return time >= stored && time - stored <= MAX_EARLIER;
}

function readWrite(row: Record<string, unknown>, id: number): Omit<StoredWrite, 'firstSentAt'> {
  try {
    return toWrite(row);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UnreadableRow(`row ${id} of writes cannot be read (${why})`, { cause: error });
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
    body: toExact(body), // undefined: earlier versions stored larger ones for bodies of 2 MiB and more
    state: state === 'answered' ? state : 'unresolved',
    endpoint: typeof endpoint === 'string' ? endpoint : undefined,
    finalFor: toCredentials(final_for),
    unresolvedFor: toCredentials(unresolved_for),
    keyOwner: toExact(row['key_owner']),
    keyOwnerKind: toExact(row['key_owner_kind']),
  };
}

/** Returns undefined beyond 2^53, where numbers are not exact. */
function toExact(integer: unknown): number | undefined {
  const number = Number(integer);
  return typeof integer === 'bigint' && Number.isSafeInteger(number) ? number : undefined;
}

function toCredentials(text: unknown): CredentialList {
  const parsed: unknown = JSON.parse(String(text));
  if (typeof parsed === 'number') return parsed;
  return Array.isArray(parsed) ? parsed.filter((each) => typeof each === 'number') : NO_CREDENTIALS;
}
