import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { readMetrics } from '../../telemetry/metrics/exposition/merged-metrics.ts';
import type { DeliveryInspection } from '../../core/delivery/delivery-store.ts';
import { answerDeliveryCall } from '../../sharing/deliveries/answer-delivery-call.ts';
import type { SharedInspections } from '../sharing/limit-sharing.ts';
import type { ProcessApi } from '../../admin/operations/process-api.ts';
import type { MessageFromWorker, WorkerQuery, WorkerQueryName, WorkerQueries } from './worker-messages.ts';

/** The handler of each query. */
export type WorkerQueryHandlers = {
  readonly [K in WorkerQueryName]: (
    input: WorkerQueries[K]['input'],
  ) => WorkerQueries[K]['result'] | Promise<WorkerQueries[K]['result']>;
};

/** @param sharing what replicas share over Redis: the primary keeps the rest. @param deliveries undefined if the primary keeps them */
export function createQueryHandlers(
  registry: Registry,
  processApi: ProcessApi,
  sharing: SharedInspections | undefined,
  deliveries: DeliveryInspection | undefined,
): WorkerQueryHandlers {
  const sharedKeys = sharing?.keys?.inspection;
  const clientQuotas = sharing?.quotas?.inspection;
  return {
    metrics: () => readMetrics(registry),
    view: (input) => processApi.view(input),
    clients: (input) => processApi.clients(input),
    requests: (input) => processApi.requests(input),
    timeline: (input) => processApi.timeline(input),
    rates: (input) => processApi.rates(input),
    explain: (input) => processApi.explain(input),
    applyOverride: (input) => processApi.applyOverride(input),
    reset: (input) => processApi.reset(input),
    keys: (query) => sharedKeys?.list(query),
    key: ({ id }) => sharedKeys?.find(id),
    forgetKey: ({ id }) => sharedKeys?.forget(id),
    clientQuotas: ({ client }) => clientQuotas?.list(client),
    resetQuotas: ({ client }) => clientQuotas?.reset(client),
    delivery: (call) => deliveries && answerDeliveryCall(deliveries, call),
    deliveryTotals: () => deliveries?.totals,
  };
}

/** Never rejects: an error is logged, and the worker goes on serving. */
export async function answerQuery<K extends WorkerQueryName>(
  handlers: WorkerQueryHandlers,
  { number, name, input }: WorkerQuery<K>,
  logger: Logger,
): Promise<MessageFromWorker> {
  try {
    return { type: 'answer', number, name, result: await handlers[name](input) };
  } catch (err) {
    logger.error({ err, question: name }, 'a query of the primary could not be answered');
    return { type: 'unanswered', number };
  }
}
