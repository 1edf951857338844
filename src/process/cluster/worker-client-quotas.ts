import type {
  ClientQuotaInspection,
  ClientQuotaView,
  QuotasUnavailable,
} from '../../core/quota/clients/client-quota-inspection.ts';
import type { Millis } from '../../core/scalars.ts';
import type { WorkerQueryDispatch } from './worker-query-dispatch.ts';

/** A call of Redis ends within `state.timeout`. */
const ANSWERED_WITHIN: Millis = 4500;

const NO_ANSWER: QuotasUnavailable = {
  kind: 'unavailable',
  why: 'Redis counts the quotas of clients, and no worker that reads them responds. Try again.',
};

/** The quotas of clients that Redis counts: a primary has no connection to it, and asks one of its workers. */
export class WorkerClientQuotas implements ClientQuotaInspection {
  readonly #workers: Pick<WorkerQueryDispatch, 'askOne'>;

  constructor(workers: Pick<WorkerQueryDispatch, 'askOne'>) {
    this.#workers = workers;
  }

  async list(client: string): Promise<readonly ClientQuotaView[] | QuotasUnavailable> {
    return (await this.#workers.askOne('clientQuotas', { client }, ANSWERED_WITHIN)) ?? NO_ANSWER;
  }

  async reset(client: string): Promise<readonly ClientQuotaView[] | QuotasUnavailable> {
    return (await this.#workers.askOne('resetQuotas', { client }, ANSWERED_WITHIN)) ?? NO_ANSWER;
  }
}
