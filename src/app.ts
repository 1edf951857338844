/** Puts the parts together, and takes them apart again. The one file that knows every folder. */
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { compileUpstreams } from './config/compile/compile-policy.ts';
import { compileClientLimits, compileSizes } from './config/compile/capacities.ts';
import { insecureUpstreams } from './config/compile/compile-snapshot.ts';
import { nameOf } from './config/schema/route-name.ts';
import type { Config } from './config/schema/config-schema.ts';
import { logChanges } from './telemetry/log/event-log.ts';
import { fanOut } from './telemetry/event-fan-out.ts';
import { createMetrics } from './telemetry/metrics/metrics.ts';
import { logRequests } from './telemetry/log/request-log.ts';
import { drainProxy, pause } from './process/drain.ts';
import { Gate } from './core/admission/gate.ts';
import type { Clock } from './core/exchange/attempt-outcome.ts';
import { StalledReaders } from './http/response/stalled-clients.ts';
import { ReplayMemory } from './http/request/request-body.ts';
import { Capacity } from './http/overload/request-capacity.ts';
import { ClientHash } from './http/request/client-hash.ts';
import { WakeTimer } from './http/wake-timer.ts';
import { LoadWatch } from './http/overload/overload-monitor.ts';
import { systemLookup } from './http/upstream/dns-resolver.ts';
import type { Opened } from './process/resource-stack.ts';
import { openWhole } from './process/resource-stack.ts';
import type { Operators } from './process/operator-servers.ts';
import { openPractice } from './process/practice-upstream.ts';
import { Proxy } from './http/request/proxy.ts';
import { OwnStation } from './admin/operations/local-process-api.ts';
import { OwnStations } from './admin/operations/single-process-group.ts';
import { areEqual, makeOperations } from './process/create-operations.ts';
import { supplier, withoutLimits } from './process/worker-membership.ts';
import { controlsOf, Reloads } from './process/config-reloads.ts';
import type { App, AppParts } from './process/app-types.ts';
import { Runtime } from './process/active-config.ts';
import { shareLimits } from './process/limit-sharing.ts';
import { MemoryStore } from './store/memory-store.ts';
import { keepState } from './store/persistence/state-persistence.ts';
import { secretOf } from './process/client-hash-secret.ts';
import { startWatching } from './process/exchange-observers.ts';

export type { App, AppParts } from './process/app-types.ts';

const ownClock: Clock = { now: () => performance.now() };

/** @throws the error of whatever could not be opened: a port in use, a certificate that cannot be read */
export function startApp(config: Config, parts: AppParts): Promise<App> {
  return openWhole((opened) => open(config, parts, opened));
}

async function open(
  first: Config,
  {
    logger,
    logOutput,
    version,
    source,
    substituted = new Map(),
    lookup = systemLookup,
    membership,
    mount,
    requestDrain,
  }: AppParts,
  opened: Opened,
): Promise<App> {
  let phase: 'starting' | 'ready' | 'draining' = 'starting';
  /** Who asks for metrics may come before all is open. */
  let operators: Operators | undefined;
  /** In effect. */
  let config = first;
  const clock = membership?.clock ?? ownClock;
  // What all workers have in common, the primary has.
  const practice = membership === undefined ? await openPractice(first) : undefined;
  if (practice !== undefined) opened.push(() => practice.close());

  const replayMemory = new ReplayMemory(first.limits.replayMemory);
  const metrics = createMetrics({
    routes: first.routes.map(nameOf),
    get upstreams() {
      return Object.keys(config.upstreams);
    },
    get insecure() {
      return insecureUpstreams(config);
    },
    endpoints: () => runtime.views(),
    clientNames: Object.keys(first.clients.names),
    view: () => gate.view(clock.now()),
    now: () => clock.now(),
    wallClock: () => Date.now(),
    replayBufferBytes: () => replayMemory.used,
    storyBytes: () => stories.bytes,
    bounds: () => [
      ...proxy.bounds,
      ...store.bounds,
      ...load.bounds,
      ...runtime.bounds(),
      ...(operators?.bounds ?? []),
      ...(logOutput === undefined ? [] : [logOutput.bound]),
      replayMemory.bound,
      stories.bound,
      clientHash.bound,
    ],
    shedShare: () => load.shedding.share,
    build: { version },
    get mode() {
      return config.mode;
    },
    store: first.state.store === 'memory' ? undefined : first.state.store,
    // Of several workers, the primary reads it.
    ...(membership === undefined ? { config: () => reloads.reading } : {}),
  });
  const { listen } = fanOut(
    [
      metrics.listen,
      logRequests(logger, () => config.log.successes),
      logChanges(logger),
      (event) => station.listen(event),
      (event) => stalledReaders.listen(event),
    ],
    (err, event) => {
      logger.error({ err, event: event.type }, 'an event could not be observed');
    },
  );

  const random = Math.random;
  const stalledReaders = new StalledReaders({ clock, free: (upstream) => runtime.free(upstream) });
  const onFree = (upstream: string): void => void (gate.vacated(upstream, clock.now()) && gateTimer.rearm());
  const secret = secretOf(first);
  const clientHash = new ClientHash(secret);
  const practiceUrl = practice?.url ?? membership?.practiceUrl;
  const runtime: Runtime = new Runtime(first, { clientHash, practiceUrl, lookup, clock, random, listen, onFree });
  opened.push(() => runtime.close());
  const load = new LoadWatch(first.limits.overload, { clock, random, listen });
  opened.push(() => Promise.resolve(load.stop()));
  const sizes = compileSizes(first, logger);
  const shared = await shareLimits(first, { membership, clock, random, listen });
  if (shared !== undefined) opened.push(() => Promise.resolve(shared.close()));
  // Of limits that the primary keeps, the primary tells.
  const listenToGate = membership === undefined || first.state.store === 'redis' ? listen : withoutLimits(listen);
  const store = new MemoryStore({
    upstreams: compileUpstreams(first),
    maxTracked: sizes.clients,
    maxLimits: sizes.clientLimits,
    random,
    listen: listenToGate,
    ...shared?.options,
    freeConnections: { get: (upstream) => () => runtime.free(upstream) },
  });
  const gate = new Gate(store, listenToGate, first.mode);
  const gateTimer = new WakeTimer(gate, clock);
  const supply = supplier(gate, gateTimer);
  const station = new OwnStation({
    gate,
    store,
    clock,
    wallClock: () => Date.now(),
    counts: metrics.counts,
    endpoints: () => runtime.views(),
    supply,
    explain: (id) => stories.find(id),
    areEqual: () => areEqual(config),
  });
  shared?.wire({ store, supply });
  const kept = await keepState(first, secret, logger, {
    clock,
    limits: () => store.learned(clock.now()),
    holds: (most) => store.clients.holds(most, clock.now()),
    restore: (learned) => store.restore(learned, clock.now()),
    upstreams: () => config.upstreams,
  });
  opened.push(() => kept.stop());
  const instance = membership?.instance ?? randomBytes(4).toString('hex');
  const ownInstance = membership === undefined ? instance : `${instance}-${membership.worker}`;
  const { stories, watcher } = await startWatching({ logger, version, instance: ownInstance }, opened);
  const proxy = new Proxy({
    context: {
      gate,
      gateTimer,
      clock,
      random,
      listen,
      watcher,
      replayMemory,
      stalledReaders,
      hash: clientHash.hash,
      via: `1.1 tidegate-${instance}`,
      proto: mount?.proto ?? (first.listen.tls === undefined ? 'http' : 'https'),
    },
    snapshot: () => runtime.snapshot,
    instance: ownInstance,
    capacity: new Capacity({ requests: sizes.requests, load, random }),
  });
  runtime.watch({
    isUsing: (endpoints) => proxy.isUsing(endpoints),
    onRemoved: (upstream) => store.remove(upstream),
    sweep: () => store.sweep(),
    onSettled: () => membership?.onSettled(),
  });
  const reloads = new Reloads(
    { config: first, substituted },
    {
      source,
      logger,
      listen: membership === undefined ? listen : () => undefined,
      wallClock: () => Date.now(),
      // A primary waits to hear that nothing is left of what was before, also where its workers' part is the same.
      onUnchanged: () => runtime.review(),
      apply: (next) => {
        const built = runtime.build(next);
        if (next.log.level !== config.log.level) logger.level = next.log.level;
        config = next;
        // Before the swap: whatever comes then finds its upstream.
        store.configure(compileUpstreams(next), compileClientLimits(next));
        runtime.swap(built);
        gate.mode = next.mode;
        gate.review(clock.now());
        gateTimer.rearm();
      },
    },
  );

  const readiness = () => ({ phase });
  const { registry } = metrics;
  membership?.show(registry, station);
  for (const order of membership?.orders ?? []) station.steer(order);
  const drain = async (delay = first.drain.delay): Promise<void> => {
    phase = 'draining';
    await pause(delay);
    const cut = await drainProxy(proxy, { timeout: first.drain.timeout, clock, cut: () => runtime.close() });
    if (cut > 0) logger.warn({ cut }, 'drain timeout: requests in flight are cut');
    await opened.close();
  };
  const operations = makeOperations({
    stations: new OwnStations(station),
    clock,
    phase: () => phase,
    workers: 1,
    version,
    reloads,
    listen,
    drain: requestDrain ?? (() => void drain()),
  });
  let url = '';
  if (mount === undefined) {
    // Whoever mounts us has a server and operators of its own, and need not read what ours need.
    const { openOwnListeners } = await import('./process/listeners.ts');
    const shown = { registry, readiness, operations };
    const parts = { proxy, maxConnections: sizes.connections, membership, shown, logger };
    ({ operators, url } = await openOwnListeners(first, parts, opened));
  } else {
    opened.push(() => proxy.close());
    await proxy.open(mount.entrance);
  }
  phase = 'ready';

  return {
    url,
    adminUrl: operators?.adminUrl,
    telemetryUrl: operators?.telemetryUrl,
    practice,
    registry,
    view: () => gate.view(clock.now()),
    stories,
    ...controlsOf(reloads),
    drain,
    close: opened.close,
  };
}
