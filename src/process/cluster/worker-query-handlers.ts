import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { readMetrics } from '../../telemetry/metrics/exposition/merged-metrics.ts';
import type { Station } from '../../admin/operations/process-api.ts';
import type { FromWorker, Question, QuestionName, WorkerDialogue } from './worker-messages.ts';

/** Who knows, by what is asked. */
export type Answerers = {
  readonly [K in QuestionName]: (
    asks: WorkerDialogue[K]['asks'],
  ) => WorkerDialogue[K]['tells'] | Promise<WorkerDialogue[K]['tells']>;
};

export function answerersOf(registry: Registry, station: Station): Answerers {
  return {
    metrics: () => readMetrics(registry),
    look: (asks) => station.look(asks),
    clients: (asks) => station.clients(asks),
    requests: (asks) => station.requests(asks),
    moments: (asks) => station.moments(asks),
    explain: (asks) => station.explain(asks),
    steer: (asks) => station.steer(asks),
    reset: (asks) => station.reset(asks),
  };
}

/** Never rejects: what keeps a worker from an answer is logged, and does not keep it from serving. */
export async function answer<K extends QuestionName>(
  by: Answerers,
  { number, name, asks }: Question<K>,
  logger: Logger,
): Promise<FromWorker> {
  try {
    return { type: 'answer', number, name, tells: await by[name](asks) };
  } catch (err) {
    logger.error({ err, question: name }, 'a question of the primary could not be answered');
    return { type: 'unanswered', number };
  }
}
