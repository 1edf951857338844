/** The primary of several workers: keeps what they share, and serves nobody but operators. */
import { randomBytes } from 'node:crypto';
import type { App, AppParts } from '../../app.ts';
import { insecureUpstreams } from '../../config/compile/compile-snapshot.ts';
import { nameOf } from '../../config/schema/route-name.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import { logChanges } from '../../telemetry/log/event-log.ts';
import { fanOut } from '../../telemetry/event-fan-out.ts';
import { MergedMetrics } from '../../telemetry/metrics/exposition/merged-metrics.ts';
import { createMetrics } from '../../telemetry/metrics/metrics.ts';
import type { Opened } from '../resource-stack.ts';
import { openWhole } from '../resource-stack.ts';
import { NOT_OPEN, openToOperators } from '../operator-servers.ts';
import { makeOperations } from '../create-operations.ts';
import { openPractice } from '../practice-upstream.ts';
import { controlsOf, Reloads } from '../config-reloads.ts';
import type { GateView } from '../../core/events/proxy-events.ts';
import { Lender } from '../../sharing/workers/limit-server.ts';
import { NEARBY } from '../../sharing/workers/lease-timing.ts';
import { secretOf } from '../client-hash-secret.ts';
import { keepState } from '../../store/persistence/state-persistence.ts';
import { addressesOf, permit, removeStaleSocket } from '../unix-socket.ts';
import { divideConfig } from './divide-config.ts';
import { hostClock } from './host-clock.ts';
import { LentSettings } from './shared-limit-settings.ts';
import { WakeTimer } from '../../http/wake-timer.ts';
import type { Start } from './worker-messages.ts';
import { ClusterStations, NOBODY, PrimaryStation } from './primary-process-api.ts';
import { Workers } from './worker-supervisor.ts';

/** A key of each kind that TLS needs: node:tls, `ticketKeys`. */
const TICKET_KEYS = 48;

/**
 * As `startApp`, in so many processes of which each is a whole proxy but for its limits.
 * @throws the error of whatever could not be opened, here or by a worker
 */
export function startCluster(config: Config, count: number, parts: AppParts): Promise<App> {
  return openWhole((opened) => open(config, count, parts, opened));
}

async function open(
  first: Config,
  count: number,
  { logger, logOutput, version, source, substituted = new Map(), requestDrain }: AppParts,
  opened: Opened,
): Promise<App> {
  let isDraining = false;
  let operators = NOT_OPEN;
  const clock = hostClock;
  const random = Math.random;
  /** In effect. */
  let config = first;
  const practice = await openPractice(first);
  if (practice !== undefined) opened.push(() => practice.close());

  const metrics = createMetrics({
    routes: first.routes.map(nameOf),
    get upstreams() {
      return Object.keys(config.upstreams);
    },
    get insecure() {
      return insecureUpstreams(config);
    },
    clientNames: Object.keys(first.clients.names),
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
    get mode() {
      return config.mode;
    },
    config: () => reloads.reading,
    store: first.state.store === 'memory' ? undefined : first.state.store,
    workers: () => workers,
  });
  const { listen } = fanOut([metrics.listen, logChanges(logger), (event) => station.listen(event)], (err, event) => {
    logger.error({ err, event: event.type }, 'an event could not be observed');
  });

  // Kept by nobody here, where they are kept in a store.
  const settings = new LentSettings(first, first.state.store === 'memory');
  const lender = new Lender(
    {
      terms: NEARBY,
      makeMeter: (ref) => settings.makeMeter(ref, random),
      listen,
      send: (to, tidings) => workers.send(to, { type: 'tidings', tidings }),
      maxLimits: first.clients.maxTracked,
    },
    settings.shared(),
  );
  const view = (): GateView => ({ limits: lender.view(clock.now()), clients: NOBODY, budgets: new Map() });
  const timer = new WakeTimer(lender, clock);
  opened.push(() => Promise.resolve(timer.stop()));

  const secret = secretOf(first);
  const kept = await keepState(first, secret, logger, {
    clock,
    limits: () => lender.learned(clock.now()),
    holds: (most) => lender.holds(most, clock.now()),
    restore: (learned) =>
      lender.restore({ ...learned, limits: learned.limits.filter(({ ref }) => settings.isKept(ref)) }, clock.now()),
    upstreams: () => config.upstreams,
  });
  opened.push(() => kept.stop());
  const ownOf = (whole: Config): Config => {
    const state = whole.state.store === 'memory' ? { ...whole.state, file: undefined } : whole.state;
    return { ...divideConfig(whole, count), admin: false, telemetry: undefined, secret, state };
  };
  let own = ownOf(first);
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
    startOf: (worker, url): Start => ({
      ...common,
      worker,
      config: url === undefined ? own : listenAt(own, url),
      orders: lender.orders(clock.now()),
    }),
    onJoin: (worker) => lender.join(worker, clock.now()),
    onReport: (worker, report) => {
      lender.hear(worker, report, clock.now());
      timer.rearm();
    },
    onListening: () => permit(first.listen.address, first.listen.permissions),
    onSettled: (worker, generation) => {
      if (generation === workers.generation) noteSettled(worker);
    },
    onGone: (worker) => {
      noteSettled(worker);
      lender.leave(worker, clock.now());
      timer.rearm();
      merged.gone(worker);
      operations.gone(worker);
    },
  });
  const merged = new MergedMetrics(metrics.registry, () => workers.ask('metrics', () => null));
  const station = new PrimaryStation({
    lender,
    clock,
    wallClock: () => Date.now(),
    scopeOf: (upstream) => settings.scopeOf(upstream),
    nestedAt: (upstream) => settings.nestedAt(upstream),
    rearm: () => timer.rearm(),
  });

  /** Workers that may still have requests of the configuration before. */
  const unsettled = new Set<number>();
  const noteSettled = (worker: number): void => {
    if (unsettled.delete(worker)) forgetRemoved();
  };
  const forgetRemoved = (): void => {
    if (unsettled.size > 0) return;
    settings.forgetOthers();
    lender.retain(settings.isKept, (upstream) => settings.scopeOf(upstream) !== undefined);
  };
  const reloads = new Reloads(
    { config: first, substituted },
    {
      source,
      logger,
      listen,
      wallClock: () => Date.now(),
      apply: async (next) => {
        if (next.log.level !== config.log.level) logger.level = next.log.level;
        config = next;
        own = ownOf(next);
        settings.change(next);
        lender.review([], clock.now());
        for (const worker of workers.all) unsettled.add(worker);
        forgetRemoved(); // at once where no worker is left
        const problems = await workers.reload({ config: own, orders: lender.orders(clock.now()) });
        // What is new is told of when all of them know it.
        lender.review(settings.shared(), clock.now());
        timer.rearm();
        for (const problem of problems) logger.error({ problem }, 'a worker is replaced: it cannot go on with this');
      },
    },
  );

  for (const address of addressesOf(first)) await removeStaleSocket(address);
  const readiness = () => ({ phase: isDraining ? 'draining' : workers.areAllServing ? 'ready' : 'starting' }) as const;
  const operations = makeOperations({
    stations: new ClusterStations(station, workers),
    clock,
    phase: () => readiness().phase,
    workers: count,
    version,
    reloads,
    listen,
    drain: requestDrain ?? (() => void drain()),
  });
  operators = await openToOperators(first, { registry: merged, readiness, operations }, opened);

  opened.push(() => workers.end('close', 0));
  const url = await workers.start();

  const drain = async (delay = first.drain.delay): Promise<void> => {
    isDraining = true;
    await new Promise((resolve) => {
      setTimeout(resolve, delay);
    });
    await workers.end('drain', first.drain.timeout);
    await opened.close();
  };

  return {
    url,
    adminUrl: operators.adminUrl,
    telemetryUrl: operators.telemetryUrl,
    practice,
    view,
    ...controlsOf(reloads),
    drain,
    close: opened.close,
  };
}

/** Where the others listened, when none of them is left: a port that was given to them stays theirs. */
function listenAt(config: Config, url: string): Config {
  const { address } = config.listen;
  if (address.kind !== 'tcp' || address.port !== 0) return config;
  return { ...config, listen: { ...config.listen, address: { ...address, port: Number(new URL(url).port) } } };
}
