/** Puts the parts together, and takes them apart again. The one file that knows every folder. */
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { compileUpstreams } from './compile-policy.ts';
import { compileSizes } from './compile-sizes.ts';
import { compileSnapshot, compileTargets, nameOf } from './compile.ts';
import type { Address } from './config/address.ts';
import type { Config } from './config/schema.ts';
import { logChanges } from './observe/change-log.ts';
import { fanOut } from './observe/events.ts';
import type { LogOutput } from './observe/log-output.ts';
import { createMetrics } from './observe/metrics.ts';
import { logRequests } from './observe/request-log.ts';
import type { Stories } from './observe/story/stories.ts';
import type { EndpointView, GateView } from './policy/events.ts';
import { Gate } from './policy/gate.ts';
import type { Clock, Millis } from './policy/types.ts';
import type { Practice } from './practice/server.ts';
import { ReplayMemory } from './proxy/body.ts';
import { Capacity } from './proxy/capacity.ts';
import { ClientHash } from './proxy/client-hash.ts';
import { WakeTimer } from './wake-timer.ts';
import { LoadWatch } from './proxy/load-watch.ts';
import type { Lookup } from './proxy/name.ts';
import { systemLookup } from './proxy/name.ts';
import type { Target } from './proxy/plan.ts';
import { NOT_OPEN, openToOperators } from './operators.ts';
import { openPractice, ownUrls } from './own-practice.ts';
import { Proxy } from './proxy/server.ts';
import type { Membership } from './membership.ts';
import { supplier, withoutLimits } from './membership.ts';
import type { SharedLimits } from './shared-limits.ts';
import { shareAmongWorkers } from './shared-limits.ts';
import { MemoryStore } from './state/memory.ts';
import type { ReplicaParts } from './replicas.ts';
import { secretOf } from './secret.ts';
import { permit, removeStaleSocket } from './unix-socket.ts';
import { startWatching } from './watching.ts';

/** A running Tidegate. */
export interface App {
  /** Where it listens, ports filled in: `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly adminUrl: string | undefined;
  readonly telemetryUrl: string | undefined;
  /** The practice upstream it plays itself, if it does. */
  readonly practice: Practice | undefined;
  /** Limits, clients and budgets as they stand. */
  view(): GateView;
  /** Of requests; where several processes serve, each worker has its own. */
  readonly stories?: Stories;
  /** Says not ready, serves on for `delay` (`drain.delay` unless given), takes no more, and ends when all is answered or `drain.timeout` is over. */
  drain(delay?: Millis): Promise<void>;
  /** Ends at once. */
  close(): Promise<void>;
}

const ownClock: Clock = { now: () => performance.now() };

export interface AppParts {
  readonly logger: Logger;
  /** What the logger writes to, where that is bounded. */
  readonly logOutput?: LogOutput;
  readonly version: string;
  /** Finds the addresses of upstreams; the system's own unless given. */
  readonly lookup?: Lookup;
  /** Where this process is one of several. */
  readonly membership?: Membership;
}

/** @throws the error of whatever could not be opened: a port in use, a certificate that cannot be read */
export async function startApp(config: Config, parts: AppParts): Promise<App> {
  // In parts that opened, when a later one fails.
  const opened: (() => Promise<void>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const close of opened.splice(0).toReversed()) await close();
  };
  try {
    return await open(config, parts, opened, closeAll);
  } catch (error) {
    await closeAll();
    throw error;
  }
}

async function open(
  config: Config,
  { logger, logOutput, version, lookup = systemLookup, membership }: AppParts,
  opened: (() => Promise<void>)[],
  closeAll: () => Promise<void>,
): Promise<App> {
  let phase: 'starting' | 'ready' | 'draining' = 'starting';
  let operators = NOT_OPEN;
  const clock = membership?.clock ?? ownClock;
  // What all workers have in common, the primary has.
  const practice = membership === undefined ? await openPractice(config) : undefined;
  if (practice !== undefined) opened.push(() => practice.close());

  const replayMemory = new ReplayMemory(config.limits.replayMemory);
  const metrics = createMetrics({
    routes: config.routes.map(nameOf),
    upstreams: Object.keys(config.upstreams),
    insecure: insecureUpstreams(config),
    clientNames: Object.keys(config.clients.names),
    endpoints: () => viewEndpoints(targets),
    view: () => gate.view(clock.now()),
    now: () => clock.now(),
    wallClock: () => Date.now(),
    replayBufferBytes: () => replayMemory.used,
    bounds: () => [
      ...proxy.bounds,
      ...store.bounds,
      ...load.bounds,
      ...[...targets.values()].map(({ endpoints }) => endpoints.bound),
      ...operators.bounds,
      ...(logOutput === undefined ? [] : [logOutput.bound]),
      replayMemory.bound,
      stories.bound,
      clientHash.bound,
    ],
    shedShare: () => load.shedding.share,
    build: { version },
    mode: config.mode,
    store: config.state.store === 'memory' ? undefined : config.state.store,
  });
  const { listen } = fanOut(
    [metrics.listen, logRequests(logger, config.log.successes), logChanges(logger)],
    (err, event) => {
      logger.error({ err, event: event.type }, 'an event could not be observed');
    },
  );

  const random = Math.random;
  const onFree = (upstream: string): void => {
    if (gate.vacated(upstream, clock.now())) gateTimer.rearm();
  };
  const targets = compileTargets(config, ownUrls(config, practice?.url ?? membership?.practiceUrl), {
    lookup,
    clock,
    random,
    listen,
    onFree,
  });
  opened.push(() => closeTargets(targets));
  const clientHash = new ClientHash(secretOf(config));
  const { hash } = clientHash;
  const snapshot = compileSnapshot(config, targets, clientHash);
  const load = new LoadWatch(config.limits.overload, { clock, random, listen });
  opened.push(() => Promise.resolve(load.stop()));
  const sizes = compileSizes(config, logger);
  const shared = await shareLimits(config, { membership, clock, random, listen });
  if (shared !== undefined) opened.push(() => Promise.resolve(shared.close()));
  // Of limits that the primary keeps, the primary tells.
  const listenToGate = membership === undefined || config.state.store === 'redis' ? listen : withoutLimits(listen);
  const store = new MemoryStore({
    upstreams: compileUpstreams(config),
    maxTracked: sizes.clients,
    maxLimits: sizes.clientLimits,
    random,
    listen: listenToGate,
    ...shared?.options,
    // Observed, everything is forwarded at once.
    ...(config.mode === 'enforce' ? { freeConnections: countFree(targets) } : {}),
  });
  const gate = new Gate(store, listenToGate, config.mode);
  const gateTimer = new WakeTimer(gate, clock);
  shared?.wire({ store, supply: supplier(gate, gateTimer) });
  const instance = membership?.instance ?? randomBytes(4).toString('hex');
  const ownInstance = membership === undefined ? instance : `${instance}-${membership.worker}`;
  const { stories, watcher } = await startWatching({ logger, version, instance: ownInstance }, opened);
  const { listen: listener } = config;
  const proxy = new Proxy({
    context: {
      gate,
      gateTimer,
      clock,
      random,
      listen,
      watcher,
      replayMemory,
      hash,
      via: `1.1 tidegate-${instance}`,
    },
    frontDoor: {
      headersTimeout: config.limits.headers,
      maxConnections: sizes.connections,
      tls: listener.tls,
      http2: listener.http2,
      ticketKeys: membership?.ticketKeys,
      onCertificate: (problem) => logCertificate(logger, problem),
    },
    snapshot: () => snapshot,
    instance: ownInstance,
    capacity: new Capacity({ requests: sizes.requests, load, random }),
  });

  if (membership === undefined) for (const address of addressesOf(config)) await removeStaleSocket(address);
  const readiness = () => ({ phase });
  const { registry } = metrics;
  membership?.showMetrics(registry);
  const find = (id: string) => Promise.resolve(stories.find(id));
  operators = await openToOperators(config, { registry, readiness, find }, opened);

  opened.push(() => proxy.close());
  const url = await proxy.listen(listener.address);
  if (membership === undefined) permit(listener.address, listener.permissions);
  phase = 'ready';

  const settleWithin = async (time: Millis): Promise<void> => {
    const by = clock.now() + time;
    while (proxy.inFlight > 0 && clock.now() < by) await sleep(DRAIN_POLL);
  };

  return {
    url,
    adminUrl: operators.adminUrl,
    telemetryUrl: operators.telemetryUrl,
    practice,
    view: () => gate.view(clock.now()),
    stories,
    drain: async (delay = config.drain.delay) => {
      phase = 'draining';
      await sleep(delay);
      const by = clock.now() + config.drain.timeout;
      proxy.drain(by);
      await settleWithin(config.drain.timeout);
      if (proxy.inFlight > 0) {
        logger.warn({ cut: proxy.inFlight }, 'drain timeout: requests in flight are cut');
        // Those are told, with what is known of them, before their connections end.
        proxy.expire();
        await closeTargets(targets);
        await settleWithin(LAST_WORDS);
      }
      await closeAll();
    },
    close: closeAll,
  };
}

/** Most share their limits with nobody: they need not read what Redis needs. */
async function shareLimits(
  { state }: Config,
  { membership, ...parts }: ReplicaParts & { readonly membership: Membership | undefined },
): Promise<SharedLimits | undefined> {
  if (state.store === 'memory') return membership && shareAmongWorkers(membership, parts.clock);
  const { shareByRedis } = await import('./replicas.ts');
  return shareByRedis(state, parts);
}

const DRAIN_POLL: Millis = 20;
/** For answers of our own to those whom the end of a drain cuts. */
const LAST_WORDS: Millis = 300;

export function addressesOf({ listen, admin, telemetry }: Config): Address[] {
  return [listen.address, ...(admin === false ? [] : [admin.listen]), ...(telemetry === undefined ? [] : [telemetry])];
}

function countFree(targets: ReadonlyMap<string, Target>): ReadonlyMap<string, () => number> {
  return new Map([...targets].map(([name, { endpoints }]) => [name, () => endpoints.free()]));
}

function viewEndpoints(targets: ReadonlyMap<string, Target>): EndpointView[] {
  return [...targets].flatMap(([upstream, { endpoints }]) =>
    endpoints.all.map(({ index, label }) => ({
      upstream,
      endpoint: label,
      isHealthy: !endpoints.isEjected(index),
    })),
  );
}

async function closeTargets(targets: ReadonlyMap<string, Target>): Promise<void> {
  await Promise.all([...targets.values()].map(({ endpoints }) => endpoints.destroy()));
}

function logCertificate(logger: Logger, problem: Error | undefined): void {
  if (problem === undefined) return logger.info('another certificate is shown to clients: its files have changed');
  const told = 'the certificate has changed and cannot be used: the one before is shown on';
  logger.warn({ problem: problem.message }, told);
}

export function insecureUpstreams(config: Config): ReadonlySet<string> {
  const insecure = Object.entries(config.upstreams).filter(([, { tls }]) => tls.insecure);
  return new Set(insecure.map(([name]) => name));
}
