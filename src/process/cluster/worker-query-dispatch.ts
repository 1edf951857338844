import type { Millis } from '../../core/scalars.ts';
import type { PendingQueries } from './pending-queries.ts';
import { isCommand, type WorkerQueries, type WorkerQueryName } from './worker-messages.ts';

/** Sends queries to all workers, or to one. */
export class WorkerQueryDispatch {
  readonly #pending: PendingQueries;
  readonly #all: ReadonlyMap<number, unknown>;
  readonly #serving: ReadonlySet<number>;

  /** @param all those that do not serve yet included */
  constructor(pending: PendingQueries, all: ReadonlyMap<number, unknown>, serving: ReadonlySet<number>) {
    this.#pending = pending;
    this.#all = all;
    this.#serving = serving;
  }

  /** Queries the workers that serve, and returns the results of those that answer in time. */
  ask<K extends WorkerQueryName>(
    name: K,
    inputFor: (worker: number) => WorkerQueries[K]['input'],
  ): Promise<ReadonlyMap<number, WorkerQueries[K]['result']>> {
    // Starting workers are not waited for, but execute commands before they serve.
    if (isCommand(name)) {
      const others = [...this.#all.keys()].filter((worker) => !this.#serving.has(worker));
      void this.#pending.ask(others, name, inputFor);
    }
    return this.#pending.ask(this.#serving, name, inputFor);
  }

  /** Queries one worker that serves. Undefined if none does, or if it does not answer in time. */
  async askOne<K extends WorkerQueryName>(
    name: K,
    input: WorkerQueries[K]['input'],
    timeout: Millis,
  ): Promise<WorkerQueries[K]['result'] | undefined> {
    const [worker] = this.#serving;
    if (worker === undefined) return undefined;
    const results = await this.#pending.ask([worker], name, () => input, timeout);
    return results.get(worker);
  }
}
