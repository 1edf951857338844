import type { StatementSync } from 'node:sqlite';
import type { OpenWrite, OpenWriteLog } from '../../core/idempotency/open-writes.ts';
import type { GroupCommit, PendingChanges } from './group-commit.ts';

/** Open writes without a key in a database. Nothing waits for them: what the end of the process makes them lose is a report. */
export class StoredOpenWrites implements OpenWriteLog, PendingChanges {
  readonly #commit: GroupCommit;
  readonly #sent = new Map<string, OpenWrite>();
  readonly #ended = new Set<string>();
  readonly #put: StatementSync;
  readonly #delete: StatementSync;

  constructor(commit: GroupCommit) {
    this.#commit = commit;
    this.#put = commit.db.prepare('INSERT OR REPLACE INTO open_writes VALUES (?, ?, ?, ?, ?)');
    this.#delete = commit.db.prepare('DELETE FROM open_writes WHERE request_id = ?');
    commit.add(this);
  }

  /** Returns the writes of earlier processes. They stay stored until `onEnd`. */
  load(): OpenWrite[] {
    const rows = this.#commit.db.prepare('SELECT * FROM open_writes ORDER BY sent_at').all();
    return rows.map(({ request_id, route, upstream, method, sent_at }) => ({
      requestId: String(request_id),
      route: String(route),
      upstream: String(upstream),
      method: String(method),
      sentAt: Number(sent_at),
    }));
  }

  onSent(write: OpenWrite): void {
    this.#sent.set(write.requestId, write);
    this.#commit.request();
  }

  onEnd(requestId: string): void {
    if (this.#sent.delete(requestId)) return; // it is not stored, or was to be deleted before it was sent again
    this.#ended.add(requestId);
    this.#commit.request();
  }

  get isEmpty(): boolean {
    return this.#sent.size === 0 && this.#ended.size === 0;
  }

  apply(): void {
    // First: a write may be open again.
    for (const requestId of this.#ended) this.#delete.run(requestId);
    for (const { requestId, route, upstream, method, sentAt } of this.#sent.values()) {
      this.#put.run(requestId, route, upstream, method, sentAt);
    }
  }

  onStored(): void {
    this.#sent.clear();
    this.#ended.clear();
  }
}
