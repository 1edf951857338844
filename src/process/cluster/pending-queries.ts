import type { Millis } from '../../core/scalars.ts';
import type { WorkerQueryResult, WorkerQuery, WorkerQueryName, WorkerQueries } from './worker-messages.ts';
import { isResultOf } from './worker-messages.ts';

/** A worker that does not answer in time does not hold up a scrape. */
const QUERY_TIMEOUT: Millis = 1000;

interface PendingQuery {
  readonly onResult: (worker: number, answer: WorkerQueryResult<WorkerQueryName>) => void;
  readonly giveUp: (worker: number) => void;
  readonly forget: (worker: number) => void;
}

/** Queries that not all workers have answered yet. */
export class PendingQueries {
  readonly #pending = new Map<number, PendingQuery>();
  readonly #send: (worker: number, query: WorkerQuery<WorkerQueryName>) => void;
  #number = 0;

  constructor(send: (worker: number, query: WorkerQuery<WorkerQueryName>) => void) {
    this.#send = send;
  }

  /** Queries workers, and returns the results of those that answer in time and have not exited since. */
  async ask<K extends WorkerQueryName>(
    workers: Iterable<number>,
    name: K,
    inputFor: (worker: number) => WorkerQueries[K]['input'],
    timeout = QUERY_TIMEOUT,
  ): Promise<ReadonlyMap<number, WorkerQueries[K]['result']>> {
    const answers = new Map<number, WorkerQueries[K]['result']>();
    const missing = new Set(workers);
    if (missing.size === 0) return answers;
    this.#number += 1;
    const number = this.#number;
    const all = Promise.withResolvers<undefined>();
    const giveUp = (worker: number): void => {
      missing.delete(worker);
      if (missing.size === 0) all.resolve(undefined);
    };
    this.#pending.set(number, {
      onResult: (worker, answer) => {
        if (!missing.has(worker) || !isResultOf(name, answer)) return;
        answers.set(worker, answer.result);
        giveUp(worker);
      },
      giveUp,
      forget: (worker) => answers.delete(worker),
    });
    const late = setTimeout(all.resolve, timeout, undefined);
    for (const worker of missing) this.#send(worker, { type: 'question', number, name, input: inputFor(worker) });
    await all.promise;
    clearTimeout(late);
    this.#pending.delete(number);
    return answers;
  }

  onResult(worker: number, answer: WorkerQueryResult<WorkerQueryName>): void {
    this.#pending.get(answer.number)?.onResult(worker, answer);
  }

  /** The worker cannot answer this query. */
  onUnanswered(worker: number, number: number): void {
    this.#pending.get(number)?.giveUp(worker);
  }

  /** Discards the results of a worker that has exited: the caller has been notified of its exit. */
  onWorkerExit(worker: number): void {
    for (const { forget, giveUp } of this.#pending.values()) {
      forget(worker);
      giveUp(worker);
    }
  }
}
