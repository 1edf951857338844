import cluster from 'node:cluster';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { startApp } from '../app.ts';
import { LogOutput } from '../observe/log-output.ts';
import { createLogger } from '../observe/log.ts';
import { readMetrics } from '../observe/merged-metrics.ts';
import type { Station } from '../operations/station.ts';
import type { Millis } from '../policy/types.ts';
import { Leaseholder } from '../state/leasing/leaseholder.ts';
import { hostClock } from './host-clock.ts';
import type { FromWorker, Question, QuestionName, Start, ToWorker, WorkerDialogue } from './messages.ts';
import { describeFailure, isToWorker } from './messages.ts';

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
    schedule: scheduler(() => leaseholder.flush(hostClock.now())),
    send: (report) => tell({ type: 'report', report }),
  });
  calls.onTidings = (tidings) => leaseholder.hear(tidings, hostClock.now());
  let generation = 0;
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
        show: (registry, station) => {
          calls.onQuestion = (question) => void answer(answerers(registry, station), question);
        },
      },
    });
    tell({ type: 'listening', url: app.url });
    calls.followReloads(async (next) => {
      generation = next.generation;
      // It listens where it was told to at first.
      const config = { ...next.config, listen: start.config.listen };
      const result = await app.apply({ config, substituted: new Map() });
      const problem = result.kind === 'refused' ? result.problem : undefined;
      tell({ type: 'reloaded', generation: next.generation, problem });
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
  onTidings: (tidings: Extract<ToWorker, { type: 'tidings' }>['tidings']) => void = () => undefined;
  onQuestion: (question: Question<QuestionName>) => void = () => undefined;
  #onReload: ((reload: Reload) => Promise<void>) | undefined;
  /** What came before it could be followed; each takes the place of the one before. */
  #early: Reload | undefined;

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
          return this.onTidings(message.tidings);
        case 'reload':
          if (this.#onReload === undefined) this.#early = message;
          else void this.#onReload(message);
          return undefined;
        case 'question':
          return this.onQuestion(message);
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

  /** From now on, beginning with what came before. */
  followReloads(follow: (reload: Reload) => Promise<void>): void {
    this.#onReload = follow;
    if (this.#early !== undefined) void follow(this.#early);
    this.#early = undefined;
  }
}

type Reload = Extract<ToWorker, { type: 'reload' }>;

type Answerers = {
  readonly [K in QuestionName]: (
    asks: WorkerDialogue[K]['asks'],
  ) => WorkerDialogue[K]['tells'] | Promise<WorkerDialogue[K]['tells']>;
};

function answerers(registry: Registry, station: Station): Answerers {
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

async function answer<K extends QuestionName>(by: Answerers, { number, name, asks }: Question<K>): Promise<void> {
  tell({ type: 'answer', number, name, tells: await by[name](asks) });
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

/** Calls at the end of this turn, or after a few milliseconds, whichever was asked for. */
function scheduler(call: () => void): (within: Millis) => void {
  let immediate: NodeJS.Immediate | undefined;
  let timer: NodeJS.Timeout | undefined;
  const run = (): void => {
    clearImmediate(immediate);
    clearTimeout(timer);
    immediate = undefined;
    timer = undefined;
    call();
  };
  return (within) => {
    if (within === 0) immediate ??= setImmediate(run);
    else if (immediate === undefined) timer ??= setTimeout(run, within).unref();
  };
}
