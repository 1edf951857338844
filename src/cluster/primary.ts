/** The primary of several workers: keeps what they share, and serves nobody but operators. */
import { randomBytes } from 'node:crypto';
import type { App, AppParts } from '../app.ts';
import { addressesOf, insecureUpstreams } from '../app.ts';
import { compileUpstreams } from '../compile-policy.ts';
import { nameOf } from '../compile.ts';
import type { Config } from '../config/schema.ts';
import { logChanges } from '../observe/change-log.ts';
import { fanOut } from '../observe/events.ts';
import { MergedMetrics } from '../observe/merged-metrics.ts';
import { createMetrics } from '../observe/metrics.ts';
import { NOT_OPEN, openToOperators } from '../operators.ts';
import { openPractice } from '../own-practice.ts';
import type { ClientsView, GateView } from '../policy/events.ts';
import { LocalMeter } from '../policy/meter.ts';
import { Lender } from '../state/leasing/lender.ts';
import { NEARBY } from '../state/leasing/lending-terms.ts';
import { secretOf } from '../secret.ts';
import { permit, removeStaleSocket } from '../unix-socket.ts';
import { divideConfig } from './divide.ts';
import { hostClock } from './host-clock.ts';
import { WakeTimer } from '../wake-timer.ts';
import type { Start } from './messages.ts';
import { Workers } from './workers.ts';

/** A key of each kind that TLS needs: node:tls, `ticketKeys`. */
const TICKET_KEYS = 48;

/**
 * As `startApp`, in so many processes of which each is a whole proxy but for its limits.
 * @throws the error of whatever could not be opened, here or by a worker
 */
export async function startCluster(config: Config, count: number, parts: AppParts): Promise<App> {
  const opened: (() => Promise<void>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const close of opened.splice(0).toReversed()) await close();
  };
  try {
    return await open(config, count, parts, opened, closeAll);
  } catch (error) {
    await closeAll();
    throw error;
  }
}

async function open(
  config: Config,
  count: number,
  { logger, logOutput, version }: AppParts,
  opened: (() => Promise<void>)[],
  closeAll: () => Promise<void>,
): Promise<App> {
  let isDraining = false;
  let operators = NOT_OPEN;
  const clock = hostClock;
  const random = Math.random;
  const practice = await openPractice(config);
  if (practice !== undefined) opened.push(() => practice.close());

  const metrics = createMetrics({
    routes: config.routes.map(nameOf),
    upstreams: Object.keys(config.upstreams),
    insecure: insecureUpstreams(config),
    clientNames: Object.keys(config.clients.names),
    view: () => view(),
    now: () => clock.now(),
    wallClock: () => Date.now(),
    replayBufferBytes: () => 0,
    bounds: () => [
      { name: 'client_limits', ...lender.bound },
      ...operators.bounds,
      ...(logOutput === undefined ? [] : [logOutput.bound]),
    ],
    build: { version },
    mode: config.mode,
    store: config.state.store === 'memory' ? undefined : config.state.store,
    workers: () => workers,
  });
  const { listen } = fanOut([metrics.listen, logChanges(logger)], (err, event) => {
    logger.error({ err, event: event.type }, 'an event could not be observed');
  });

  const upstreams = new Map(compileUpstreams(config).map((upstream) => [upstream.name, upstream] as const));
  // Kept by nobody here, where they are kept in a store.
  const isKeeper = config.state.store === 'memory';
  const shared = [...upstreams.values()].filter(({ scope }) => isKeeper && scope === 'upstream');
  const lender = new Lender(
    {
      terms: NEARBY,
      makeMeter: ({ upstream }) => {
        const settings = upstreams.get(upstream);
        if (settings === undefined) throw new Error(`no upstream is named '${upstream}'`);
        return new LocalMeter(settings.rate, random);
      },
      listen,
      send: (to, tidings) => workers.send(to, { type: 'tidings', tidings }),
      maxLimits: config.clients.maxTracked,
    },
    shared.map(({ name }) => ({ upstream: name, scope: 'upstream', key: '' })),
  );
  const view = (): GateView => ({ limits: lender.view(clock.now()), clients: NOBODY, budgets: new Map() });
  const timer = new WakeTimer(lender, clock);
  opened.push(() => Promise.resolve(timer.stop()));

  const secret = secretOf(config);
  const own: Config = { ...divideConfig(config, count), admin: false, telemetry: undefined, secret };
  const common = {
    instance: randomBytes(4).toString('hex'),
    version,
    practiceUrl: practice?.url,
    ticketKeys: randomBytes(TICKET_KEYS),
  };
  const workers: Workers = new Workers({
    count,
    logger,
    random,
    startOf: (worker, url): Start => ({ ...common, worker, config: url === undefined ? own : listenAt(own, url) }),
    onJoin: (worker) => lender.join(worker, clock.now()),
    onReport: (worker, report) => {
      lender.hear(worker, report, clock.now());
      timer.rearm();
    },
    onListening: () => permit(config.listen.address, config.listen.permissions),
    onGone: (worker) => {
      lender.leave(worker, clock.now());
      timer.rearm();
      merged.gone(worker);
    },
  });
  const merged = new MergedMetrics(metrics.registry, () => workers.ask());

  for (const address of addressesOf(config)) await removeStaleSocket(address);
  const readiness = () => ({ phase: isDraining ? 'draining' : workers.areAllServing ? 'ready' : 'starting' }) as const;
  operators = await openToOperators(config, { registry: merged, readiness }, opened);

  opened.push(() => workers.end('close', 0));
  const url = await workers.start();

  return {
    url,
    adminUrl: operators.adminUrl,
    telemetryUrl: operators.telemetryUrl,
    practice,
    view,
    drain: async (delay = config.drain.delay) => {
      isDraining = true;
      await new Promise((resolve) => {
        setTimeout(resolve, delay);
      });
      await workers.end('drain', config.drain.timeout);
      await closeAll();
    },
    close: closeAll,
  };
}

/** The primary has no clients of its own. */
const NOBODY: ClientsView = {
  tracked: 0,
  byState: { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 },
  allowance: { min: 1, mean: 1 },
};

/** Where the others listened, when none of them is left: a port that was given to them stays theirs. */
function listenAt(config: Config, url: string): Config {
  const { address } = config.listen;
  if (address.kind !== 'tcp' || address.port !== 0) return config;
  return { ...config, listen: { ...config.listen, address: { ...address, port: Number(new URL(url).port) } } };
}
