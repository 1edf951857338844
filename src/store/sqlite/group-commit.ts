import type { DatabaseSync } from 'node:sqlite';
import type { Clock, Millis } from '../../core/scalars.ts';

/** Changes that wait to be stored. */
export interface PendingChanges {
  readonly isEmpty: boolean;
  /** Within a transaction. May be called again if that fails. */
  apply(): void;
  /** They are stored. */
  onStored(): void;
  /** They could not be stored, and are tried again later. */
  onFailed?(error: unknown): void;
}

export interface GroupCommitOptions {
  readonly db: DatabaseSync;
  /** Before each transaction. If it throws, nothing can be stored. */
  readonly prepare?: () => void;
  /** Calls `run` after this time; 0: at the end of this turn of the event loop. */
  readonly schedule: (delay: Millis, run: () => void) => void;
  /** Changes could not be stored, or can be stored again (undefined). */
  readonly onProblem: (error: unknown) => void;
  readonly clock: Clock;
  /** A transaction has ended, after so long. */
  readonly onCommit?: (isStored: boolean, took: Millis) => void;
}

/** After a failure, changes are stored again so much later. */
const RETRY_DELAY: Millis = 1000;
/** Between the steps of changes that are too many for one transaction. A step of 1000 deleted rows takes about 1 ms. */
const STEP_INTERVAL: Millis = 50;

/** Stores the changes of a turn of the event loop in one transaction, so that all of them cost one sync of the disk. */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  readonly #changes: PendingChanges[] = [];
  #waiting: ((isStored: boolean) => void)[] = [];
  #isScheduled = false;
  #hasFailed = false;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  get db(): DatabaseSync {
    return this.#options.db;
  }

  add(changes: PendingChanges): void {
    this.#changes.push(changes);
  }

  /** Some changes wait. */
  request(): void {
    this.#schedule(0);
  }

  /** Calls back once all changes so far are stored. @param run `isStored`: false if they could not be stored */
  whenStored(run: (isStored: boolean) => void): void {
    this.#waiting.push(run);
    this.#schedule(0);
  }

  /** For changes that are too many for one transaction: calls back once those so far are stored, and a pause is over. */
  nextStep(run: () => void): void {
    this.whenStored((isStored) =>
      this.#options.schedule(STEP_INTERVAL, () => {
        if (!this.db.isOpen) return;
        if (isStored) run();
        else this.nextStep(run);
      }),
    );
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
    const pending = this.#changes.filter(({ isEmpty }) => !isEmpty);
    if (pending.length === 0) return true;
    const { db, prepare, onProblem, clock, onCommit } = this.#options;
    const since = clock.now();
    try {
      prepare?.();
      db.exec('BEGIN IMMEDIATE');
      for (const changes of pending) changes.apply();
      db.exec('COMMIT');
    } catch (error) {
      if (db.isOpen && db.isTransaction) db.exec('ROLLBACK');
      onCommit?.(false, clock.now() - since);
      if (!this.#hasFailed) onProblem(error);
      this.#hasFailed = true;
      for (const changes of pending) changes.onFailed?.(error);
      return false;
    }
    onCommit?.(true, clock.now() - since);
    for (const changes of pending) changes.onStored();
    if (this.#hasFailed) onProblem(undefined);
    this.#hasFailed = false;
    return true;
  }
}
