import type { DatabaseSync, StatementSync } from 'node:sqlite';

export interface WorkerProcess {
  readonly pid: number;
  /** Distinguishes it from other processes that have this pid at another time. */
  readonly identity: string;
}

/** The worker processes of a primary: they outlive it if it is killed, and the next process must not serve beside them. */
export class StoredWorkerProcesses {
  readonly #db: DatabaseSync;
  readonly #onProblem: (error: unknown) => void;
  readonly #put: StatementSync;
  readonly #delete: StatementSync;

  /** @param onProblem a change could not be stored */
  constructor(db: DatabaseSync, onProblem: (error: unknown) => void) {
    this.#db = db;
    this.#onProblem = onProblem;
    this.#put = db.prepare('INSERT OR REPLACE INTO worker_processes VALUES (?, ?)');
    this.#delete = db.prepare('DELETE FROM worker_processes WHERE pid = ? AND identity = ?');
  }

  load(): WorkerProcess[] {
    const rows = this.#db.prepare('SELECT * FROM worker_processes ORDER BY pid').all();
    return rows.map(({ pid, identity }) => ({ pid: Number(pid), identity: String(identity) }));
  }

  /** To be called before it serves. */
  add({ pid, identity }: WorkerProcess): void {
    this.#run(() => this.#put.run(pid, identity));
  }

  /** It has ended. */
  remove({ pid, identity }: WorkerProcess): void {
    this.#run(() => this.#delete.run(pid, identity));
  }

  #run(change: () => void): void {
    if (!this.#db.isOpen) return;
    try {
      change();
    } catch (error) {
      this.#onProblem(error);
    }
  }
}
