import cluster from 'node:cluster';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { startApp } from '../../app.ts';
import { LogOutput } from '../../telemetry/log/stdout-destination.ts';
import { createLogger } from '../../telemetry/log/logger.ts';
import type { Station } from '../../admin/operations/process-api.ts';
import { Leaseholder } from '../../sharing/workers/limit-client.ts';
import type { Tidings } from '../../sharing/workers/worker-protocol.ts';
import { answer, answerersOf } from './worker-query-handlers.ts';
import { Backlog } from './early-messages.ts';
import { callInTime } from './coalesced-timer.ts';
import { hostClock } from './host-clock.ts';
import type { FromWorker, Question, QuestionName, Reload, Start } from './worker-messages.ts';
import { describeFailure, isOrder, isToWorker } from './worker-messages.ts';

/** What a worker comes to. */
export interface Work {
  readonly logger: Logger;
  /** Resolves when it is to end: told to, or because its primary is gone. */
  readonly over: Promise<'drain' | 'close'>;
  end(how: 'drain' | 'close'): Promise<void>;
}

/**
 * Serves as one of several workers, as the primary at the other end of the channel says.
 * @returns undefined when it could not be started: the primary has been told why
 */
export async function work(): Promise<Work | undefined> {
  const calls = new Calls();
  const start = await calls.start;
  if (start === undefined) return undefined;
  const logOutput = new LogOutput(start.config.log.buffer, true);
  const logger = createLogger({ level: start.config.log.level, destination: logOutput }).child({
    worker: start.worker,
  });
  const leaseholder = new Leaseholder({
    schedule: callInTime(() => leaseholder.flush(hostClock.now())),
    send: (report) => tell({ type: 'report', report }),
  });
  calls.tidings.follow((tidings) => leaseholder.hear(tidings, hostClock.now()));
  let generation = 0;
  const shown = Promise.withResolvers<{ readonly registry: Registry; readonly station: Station }>();
  try {
    const app = await startApp(start.config, {
      logger,
      logOutput,
      version: start.version,
      membership: {
        worker: start.worker,
        instance: start.instance,
        clock: hostClock,
        leaseholder,
        practiceUrl: start.practiceUrl,
        ticketKeys: Buffer.from(start.ticketKeys),
        onSettled: () => tell({ type: 'settled', generation }),
        orders: start.orders,
        show: (registry, station) => shown.resolve({ registry, station }),
      },
    });
    tell({ type: 'listening', url: app.url });
    const { registry, station } = await shown.promise;
    const reload = async (next: Reload): Promise<void> => {
      generation = next.generation;
      // It listens where it was told to at first.
      const config = { ...next.config, listen: start.config.listen };
      const result = await app.apply({ config, substituted: new Map() });
      for (const order of next.orders) await station.steer(order);
      const problem = result.kind === 'refused' ? result.problem : undefined;
      tell({ type: 'reloaded', generation: next.generation, problem });
    };
    let reloading = Promise.resolve();
    calls.reloads.follow((each) => {
      reloading = reloading.then(() => reload(each));
    });
    const answerers = answerersOf(registry, station);
    calls.questions.follow((question) => {
      // What was asked after a reload may be of an upstream that came with it.
      const ready = isOrder(question.name) ? reloading : Promise.resolve();
      void ready.then(async () => tell(await answer(answerers, question, logger)));
    });
    return {
      logger,
      over: calls.over,
      // Its balancer, if it has one, has been waited for by the primary.
      end: (how) => (how === 'drain' ? app.drain(0) : app.close()),
    };
  } catch (error) {
    await tellLast({ type: 'failed', failure: describeFailure(error) });
    return undefined;
  }
}

/** What the primary says. */
class Calls {
  readonly start: Promise<Start | undefined>;
  readonly over: Promise<'drain' | 'close'>;
  readonly tidings = new Backlog<Tidings>();
  readonly reloads = new Backlog<Reload>();
  readonly questions = new Backlog<Question<QuestionName>>();

  constructor() {
    const started = Promise.withResolvers<Start | undefined>();
    const over = Promise.withResolvers<'drain' | 'close'>();
    this.start = started.promise;
    this.over = over.promise;
    process.on('message', (message: unknown) => {
      if (!isToWorker(message)) return;
      switch (message.type) {
        case 'start':
          return started.resolve(message.start);
        case 'tidings':
          return this.tidings.add(message.tidings);
        case 'reload':
          return this.reloads.add(message);
        case 'question':
          return this.questions.add(message);
        case 'drain':
        case 'close':
          return over.resolve(message.type);
      }
    });
    // Node 24 ends a worker at once that loses its primary, unless it is on its way out (lib/internal/cluster/child.js).
    Object.assign(cluster.worker ?? {}, { exitedAfterDisconnect: true });
    // Nobody would lend anything any more, nor take new connections.
    process.once('disconnect', () => {
      started.resolve(undefined);
      over.resolve('drain');
    });
  }
}

/** Where the primary is gone, there is nobody to tell. */
function tell(message: FromWorker, told?: () => void): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => told?.());
  else told?.();
}

function tellLast(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    tell(message, resolve);
  });
}
