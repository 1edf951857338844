import type {
  KeyInspection,
  KeysUnavailable,
  WriteLookup,
  WriteMatches,
  WriteQuery,
  WriteRemoval,
} from '../../core/idempotency/key-inspection.ts';
import type { Millis } from '../../core/scalars.ts';
import type { WorkerQueryDispatch } from './worker-query-dispatch.ts';

/** A search of a worker takes 4 s at most. */
const ANSWERED_WITHIN: Millis = 4500;

const NO_ANSWER: KeysUnavailable = {
  kind: 'unavailable',
  why: 'Redis has the keys, and no worker that reads them responds. Try again.',
};
/** A worker that responds too late forgets the key all the same. */
const NO_ANSWER_TO_FORGET: WriteRemoval = { kind: 'unconfirmed', write: undefined };

/** The keys that replicas share over Redis: a primary has no connection to it, and asks one of its workers. */
export class WorkerKeyInspection implements KeyInspection {
  /** As the workers read them. */
  readonly timeOrigin: Millis = 0;
  readonly #workers: Pick<WorkerQueryDispatch, 'askOne'>;

  constructor(workers: Pick<WorkerQueryDispatch, 'askOne'>) {
    this.#workers = workers;
  }

  async list(query: WriteQuery): Promise<WriteMatches | KeysUnavailable> {
    return (await this.#workers.askOne('keys', query, ANSWERED_WITHIN)) ?? NO_ANSWER;
  }

  async find(id: string): Promise<WriteLookup | KeysUnavailable> {
    return (await this.#workers.askOne('key', { id }, ANSWERED_WITHIN)) ?? NO_ANSWER;
  }

  async forget(id: string): Promise<WriteRemoval | KeysUnavailable> {
    return (await this.#workers.askOne('forgetKey', { id }, ANSWERED_WITHIN)) ?? NO_ANSWER_TO_FORGET;
  }
}
