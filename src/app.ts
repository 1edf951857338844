/** Builds one serving process from its parts, and closes it again. */
import { compileUpstreams } from './config/compile/compile-policy.ts';
import { computeCapacities, computeQuotaClientCapacity } from './config/compile/capacities.ts';
import type { Config } from './config/schema/config-schema.ts';
import { fanOutEvents } from './telemetry/event-fan-out.ts';
import { logListenerErrors, logListeners } from './telemetry/log/log-listeners.ts';
import { applyConfig } from './process/apply-config.ts';
import { drainProxy } from './process/drain.ts';
import { Gate } from './core/admission/gate.ts';
import type { Clock } from './core/scalars.ts';
import { StalledClients } from './http/response/stalled-clients.ts';
import { createBodyMemory } from './http/overload/body-memory.ts';
import { RequestCapacity } from './http/overload/request-capacity.ts';
import { ClientHasher } from './http/request/client-hash.ts';
import { WakeTimer } from './http/wake-timer.ts';
import { OverloadMonitor } from './http/overload/overload-monitor.ts';
import { systemLookup } from './http/upstream/dns-resolver.ts';
import { type ResourceStack, withRollback } from './process/resource-stack.ts';
import type { OperatorServers } from './process/operator-servers.ts';
import { openPracticeUpstream } from './process/practice-upstream.ts';
import { Proxy } from './http/request/proxy.ts';
import { LocalProcessApi } from './admin/operations/local-process-api.ts';
import { SingleProcessGroup } from './admin/operations/single-process-group.ts';
import { haveEqualWeights, createOperations } from './process/create-operations.ts';
import { createSupplyHandlers, withoutLimitEvents } from './process/worker-membership.ts';
import { reloadControls, ConfigReloads } from './process/config-reloads.ts';
import { createInstanceId } from './process/instance-id.ts';
import type { App, AppParts } from './process/app-types.ts';
import { SuspensionClock } from './process/suspension-clock.ts';
import { ActiveConfig } from './process/active-config.ts';
import { shareLimits } from './process/sharing/limit-sharing.ts';
import { MemoryStore } from './store/memory-store.ts';
import { openStatePersistence } from './store/persistence/state-persistence.ts';
import { findClientQuotas } from './process/find-client-quotas.ts';
import { openOwnState, quotaParts } from './process/own-state.ts';
import { startExchangeObservers } from './process/exports/exchange-observers.ts';
import { watchProcess } from './process/health/watch-process.ts';
import { createDeliveries, type Deliveries, DeliveryHooks } from './process/deliveries/create-deliveries.ts';
import { createProcessMetrics } from './process/create-process-metrics.ts';

export type { App, AppParts } from './process/app-types.ts';

const processClock: Clock = new SuspensionClock();

/** @throws the error of what could not be opened, such as a port in use or a certificate that cannot be read */
export function startApp(config: Config, parts: AppParts): Promise<App> {
  return withRollback((opened) => openApp(config, parts, opened));
}

async function openApp(first: Config, parts: AppParts, resources: ResourceStack): Promise<App> {
  const { logger, logOutput, version, source, substituted = new Map(), membership, mount } = parts;
  let phase: 'starting' | 'ready' | 'draining' = 'starting';
  /** Undefined until the listeners are open; a scrape of the first may come before the second is open. */
  let operatorServers: OperatorServers | undefined;
  /** The configuration in effect. */
  let config = first;
  const clock = membership?.clock ?? processClock;
  // With several workers, the primary runs the practice upstream.
  const practice = membership === undefined ? await openPracticeUpstream(first) : undefined;
  if (practice !== undefined) resources.push(() => practice.close());

  const { replayMemory, costMemory } = createBodyMemory(first.limits.replayMemory);
  const metrics = createProcessMetrics(first, {
    currentConfig: () => config,
    clock,
    version,
    endpoints: () => activeConfig.endpointViews(),
    view: () => gate.view(clock.now()),
    replayBufferBytes: () => replayMemory.used,
    explanationBytes: () => explanations.bytes,
    bounds: () => [
      ...proxy.bounds,
      ...store.bounds,
      ...overloadMonitor.bounds,
      ...activeConfig.bounds(),
      ...(deliveries?.store.bounds ?? []),
      ...(operatorServers?.bounds ?? []),
      ...[replayMemory, costMemory, explanations, clientHash, logOutput].flatMap((part) => (part ? [part.bound] : [])),
    ],
    deliveries: () => deliveries?.store.totals,
    sharedKeys: () => limitSharing?.keys?.counts ?? [],
    storedWrites: () => state.storedWrites?.() ?? {},
    shedShare: () => overloadMonitor.loadShedding.shedShare,
    // With several workers, the primary reads the configuration.
    ...(membership === undefined ? { config: () => reloads.readStatus } : {}),
  });
  // Created before anything that emits events: while a process starts, Redis may already fail.
  const processApi = new LocalProcessApi({
    ...{ gate: () => gate, store: () => store, clock },
    wallClock: () => Date.now(),
    counts: metrics.counts,
    endpoints: () => activeConfig.endpointViews(),
    onTokensSupplied: (limit, now) => supply.onTokensSupplied(limit, now),
    explain: (id) => explanations.find(id),
    haveEqualWeights: () => haveEqualWeights(config),
    onFailure: membership?.onFailure,
  });
  const { listen } = fanOutEvents(
    [
      metrics.listen,
      ...logListeners(logger, processApi.failureOf, () => config.log.successes),
      processApi.listen,
      (event) => stalledReaders.onEvent(event),
    ],
    logListenerErrors(logger),
  );

  const random = Math.random;
  const stalledReaders = new StalledClients({
    clock,
    connections: (upstream) => activeConfig.connections(upstream),
    awaitedEnds: (upstream, now) => gate.connections.awaitedEnds(upstream, now),
  });
  const deliveryHooks = new DeliveryHooks(() => config);
  const state = membership ?? (await openOwnState(first, { clock, logger, listen, metrics, deliveryHooks }, resources));
  const clientHash = new ClientHasher(state.secret);
  const activeConfig: ActiveConfig = new ActiveConfig(first, {
    clientHash,
    practiceUrl: practice?.url ?? membership?.practiceUrl,
    lookup: parts.lookup ?? systemLookup,
    ...{ clock, random, listen },
    onFree: (upstream) => void (gate.connections.onFree(upstream, clock.now()) && gateTimer.rearm()),
    onAwaited: (upstream, connections) =>
      activeConfig.isObserved(upstream) || stalledReaders.onAwaited(upstream, connections),
  });
  resources.push(() => activeConfig.close());
  const overloadMonitor = new OverloadMonitor(first.limits.overload, { clock, random, listen });
  resources.push(() => Promise.resolve(overloadMonitor.stop()));
  const sizes = computeCapacities(first, logger);
  const limitSharing = await shareLimits(first, { membership, clock, random, listen, configInEffect: () => config });
  if (limitSharing !== undefined) resources.push(() => limitSharing.close());
  // The primary reports the events of the limits that it keeps.
  const listenToGate = membership === undefined || first.state.store === 'redis' ? listen : withoutLimitEvents(listen);
  const store = new MemoryStore({
    upstreams: compileUpstreams(first),
    maxTracked: sizes.clients,
    maxLimits: sizes.clientLimits,
    maxQuotaClients: computeQuotaClientCapacity(first),
    random,
    listen: listenToGate,
    ...{ ...limitSharing?.storeOptions, connections: stalledReaders, hash: clientHash.uncachedHash },
    quotas: quotaParts(state, clock, limitSharing?.quotas),
  });
  const gate = new Gate(store, listenToGate);
  const gateTimer = new WakeTimer(gate, clock);
  const supply = createSupplyHandlers(gate, gateTimer);
  limitSharing?.bind({ store, ...supply });
  const statePersistence = await openStatePersistence(first, state, logger, {
    clock,
    limits: () => store.learnedViews(clock.now()),
    activeHolds: (max) => store.clients.activeHolds(max, clock.now()),
    restore: (learned) => store.restore(learned, clock.now()),
    config: () => config,
  });
  resources.push(() => statePersistence.stop());
  const instance = membership?.instance ?? parts.instance ?? createInstanceId();
  const processInstance = membership === undefined ? instance : `${instance}-${membership.worker}`;
  const { explanations, observer } = await startExchangeObservers(
    { logger, version, instance: processInstance, openWrites: state.openWrites },
    resources,
  );
  const deliveryParts = { deliveryHooks, state, limitSharing, activeConfig, random, logger, listen, resources };
  const deliveries: Deliveries | undefined = await createDeliveries(first, () => proxy, deliveryParts);
  const proxy: Proxy = new Proxy({
    context: {
      ...{ gate, gateTimer, clock, random, listen, observer, replayMemory, costMemory },
      stalledClients: stalledReaders,
      hash: clientHash.hash,
      ...(limitSharing?.keys?.writeKeys ?? state.writeKeys),
      via: `1.1 tidegate-${instance}`,
      proto: mount?.proto ?? (first.listen.tls === undefined ? 'http' : 'https'),
    },
    snapshot: () => activeConfig.snapshot,
    instance: processInstance,
    capacity: new RequestCapacity({ maxRequests: sizes.requests, overload: overloadMonitor, random }),
    deliveries: deliveries?.intake,
  });
  activeConfig.setHooks({
    isUsing: (endpoints) => proxy.usesEndpoints(endpoints),
    onRemoved: (upstream) => store.removeUpstream(upstream),
    sweep: () => store.sweep(),
    onSettled: () => membership?.onSettled(),
  });
  const reloads = new ConfigReloads(
    { config: first, substituted },
    {
      source,
      logger,
      listen: membership === undefined ? listen : () => undefined,
      wallClock: () => Date.now(),
      // The primary waits until nothing of the previous configuration is left, even if this worker's part is unchanged.
      onUnchanged: () => activeConfig.scheduleSweep(),
      apply: (next) => {
        const target = { activeConfig, store, gate, gateTimer, clock, logger };
        applyConfig(config, next, target, (applied) => (config = applied));
        deliveries?.wake();
      },
    },
  );
  const { certificates, registry } = metrics;
  membership?.exposeToPrimary(registry, processApi, limitSharing, deliveries?.store);
  for (const order of membership?.overrides ?? []) processApi.applyOverride(order);
  const drain = async (delay = first.drain.delay): Promise<void> => {
    phase = 'draining';
    deliveries?.stop();
    await drainProxy(proxy, { delay, timeout: first.drain.timeout, clock, logger, upstreams: activeConfig });
    await resources.close();
  };
  const processes = new SingleProcessGroup(processApi);
  const operations = createOperations({
    processes,
    keys: limitSharing?.keys?.inspection ?? state.inspection,
    clientQuotas: findClientQuotas(store, clock, limitSharing?.quotas),
    ...{ deliveries: deliveries?.store, clock, secret: state.secret, phase: () => phase },
    workers: 1,
    version,
    reloads,
    certificates,
    listen,
    drain: parts.requestDrain ?? (() => void drain()),
  });
  let url = '';
  if (mount === undefined) {
    // A program that mounts the proxy has its own server and admin port, so it never loads these modules.
    const { openListeners } = await import('./process/listeners.ts');
    const operatorOptions = { registry, readiness: () => ({ phase }), operations, logger, version, instance };
    const listenerParts = { proxy, maxConnections: sizes.connections, membership, operatorOptions, logger };
    ({ operators: operatorServers, url } = await openListeners(first, listenerParts, resources));
  } else {
    resources.push(() => proxy.close());
    await proxy.open(mount.entrance);
  }
  phase = 'ready';
  deliveries?.wake();
  if ('onServing' in state) state.onServing();
  if (membership === undefined) watchProcess({ processes, certificates, clock, listen }, resources);

  return {
    url,
    adminUrl: operatorServers?.adminUrl,
    telemetryUrl: operatorServers?.telemetryUrl,
    practice,
    registry,
    view: () => gate.view(clock.now()),
    explanations,
    ...reloadControls(reloads),
    drain,
    close: resources.close,
  };
}
