/** The primary of several workers: keeps what they share, and serves only operators. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { App, AppParts } from '../../app.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import { logListenerErrors, logListeners } from '../../telemetry/log/log-listeners.ts';
import { fanOutEvents } from '../../telemetry/event-fan-out.ts';
import { MergedMetrics } from '../../telemetry/metrics/exposition/merged-metrics.ts';
import { type ResourceStack, withRollback } from '../resource-stack.ts';
import { NO_OPERATOR_SERVERS, startOperatorOutputs } from '../operator-servers.ts';
import { createOperations } from '../create-operations.ts';
import { openPracticeUpstream } from '../practice-upstream.ts';
import { watchProcess } from '../health/watch-process.ts';
import { createProcessMetrics } from '../create-process-metrics.ts';
import { reloadControls, ConfigReloads } from '../config-reloads.ts';
import type { GateView } from '../../core/events/gate-views.ts';
import { openPrimaryState } from './primary-state.ts';
import { LimitServer } from '../../sharing/workers/limit-server.ts';
import { WORKER_LEASE_TIMING } from '../../sharing/workers/lease-timing.ts';
import { openStatePersistence } from '../../store/persistence/state-persistence.ts';
import { listenAddresses, setSocketPermissions, removeStaleSocket } from '../unix-socket.ts';
import { createInstanceId } from '../instance-id.ts';
import { createFork } from './fork-worker.ts';
import { deriveWorkerConfig, withListenPort } from './worker-config.ts';
import { hostClock as clock } from './host-clock.ts';
import { SharedLimitSettings } from './shared-limit-settings.ts';
import { WakeTimer } from '../../http/wake-timer.ts';
import type { MessageToWorker, WorkerStart } from './worker-messages.ts';
import { ClusterProcessGroup, primaryGateView, PrimaryProcessApi } from './primary-process-api.ts';
import { WorkerSupervisor } from './worker-supervisor.ts';

/** The length that node:tls requires of `ticketKeys`. */
const TICKET_KEYS = 48;

/**
 * Starts the proxy as `count` worker processes. Each is a complete proxy, but the primary keeps the limits.
 * @throws the error of what could not be opened, by the primary or by a worker
 */
export function startCluster(config: Config, count: number, parts: AppParts): Promise<App> {
  return withRollback((opened) => openCluster(config, count, parts, opened));
}

async function openCluster(
  first: Config,
  count: number,
  {
    logger,
    logOutput,
    version,
    instance = createInstanceId(),
    source,
    substituted = new Map(),
    requestDrain,
  }: AppParts,
  resources: ResourceStack,
): Promise<App> {
  let isDraining = false;
  let operatorServers = NO_OPERATOR_SERVERS;
  /** The configuration in effect. */
  let config = first;
  const practice = await openPracticeUpstream(first);
  if (practice !== undefined) resources.push(() => practice.close());

  const metrics = createProcessMetrics(first, {
    currentConfig: () => config,
    clock,
    version,
    view: () => view(),
    replayBufferBytes: () => 0,
    bounds: () => [
      { name: 'client_limits', ...limitServer.bound },
      ...stateServer.bounds,
      ...operatorServers.bounds,
      ...(logOutput === undefined ? [] : [logOutput.bound]),
    ],
    storedWrites: () => ownState.storedWrites(),
    deliveries: () => ownState.deliveries?.totals,
    config: () => reloads.readStatus,
    workers: () => workers,
  });
  // Created before anything that emits events: while the primary starts, its database may already fail.
  const processApi = new PrimaryProcessApi({
    ...{ limitServer: () => limitServer, quotaViews: () => stateServer.quotaViews(), clock },
    wallClock: () => Date.now(),
    scopeOf: (upstream) => settings.scopeOf(upstream),
    nestedLimitScopes: (upstream) => settings.nestedLimitScopes(upstream),
    rearm: () => timer.rearm(),
  });
  const { listen } = fanOutEvents(
    [metrics.listen, ...logListeners(logger, processApi.failureOf, () => config.log.successes), processApi.listen],
    logListenerErrors(logger),
  );

  // With a shared store, the store keeps the limits, and the primary none.
  const settings = new SharedLimitSettings(first, first.state.store !== 'redis');
  const limitServer = new LimitServer(
    {
      timing: WORKER_LEASE_TIMING,
      makeMeter: (ref) => settings.makeMeter(ref, Math.random),
      listen,
      send: (to, updates) => workers.send(to, { type: 'updates', updates }),
      maxLimits: first.clients.maxTracked,
    },
    settings.sharedRefs(),
  );
  const send = (to: number, message: MessageToWorker): void => workers.send(to, message);
  const stateParts = { clock, logger, listen, metrics, send, config: () => config, isDraining: () => isDraining };
  const { ownState, stateServer } = await openPrimaryState(first, stateParts, resources);
  const { keySecret, secret, database } = ownState;
  const view = (): GateView => primaryGateView(limitServer.view(clock.now()), stateServer.quotaViews());
  const timer = new WakeTimer(limitServer, clock);
  resources.push(() => Promise.resolve(timer.stop()));

  const statePersistence = await openStatePersistence(first, { secret, database }, logger, {
    clock,
    limits: () => limitServer.learnedViews(clock.now()),
    activeHolds: (max) => limitServer.activeHolds(max, clock.now()),
    restore: (learned) =>
      limitServer.restore(
        { ...learned, limits: learned.limits.filter(({ ref }) => settings.isConfigured(ref)) },
        clock.now(),
      ),
    config: () => config,
  });
  resources.push(() => statePersistence.stop());
  let workerConfig = deriveWorkerConfig(first, count, secret);
  const common = {
    instance,
    version,
    practiceUrl: practice?.url,
    ticketKeys: randomBytes(TICKET_KEYS),
    keySecret,
    reportsOpenWrites: ownState.openWrites !== undefined,
    storesDeliveries: ownState.deliveries !== undefined,
  };
  const workers: WorkerSupervisor = new WorkerSupervisor({
    count,
    logger,
    random: Math.random,
    fork: createFork(ownState.workerProcesses),
    startOf: (worker, url): WorkerStart => ({
      ...common,
      worker,
      config: url === undefined ? workerConfig : withListenPort(workerConfig, url),
      overrides: limitServer.overrideCommands(clock.now()),
    }),
    onJoin: (worker) => {
      limitServer.join(worker, clock.now());
      stateServer.join(worker);
    },
    onReport: (worker, report) => {
      limitServer.onReport(worker, report, clock.now());
      timer.rearm();
    },
    ...stateServer.handlers,
    onFailure: ({ upstream, failure }) => processApi.onFailure(upstream, failure),
    onListening: () => setSocketPermissions(first.listen.address, first.listen.permissions),
    onSettled: (worker, generation) => {
      if (generation === workers.generation) noteSettled(worker);
    },
    onDisconnect: stateServer.leave,
    onExit: (worker) => {
      noteSettled(worker);
      limitServer.leave(worker, clock.now());
      timer.rearm();
      merged.onWorkerExit(worker);
      operations.onProcessExit(worker);
    },
  });
  const merged = new MergedMetrics(metrics.registry, () => workers.queries.ask('metrics', () => null));

  /** Workers that may still have requests of the former configuration. */
  const unsettledWorkers = new Set<number>();
  const noteSettled = (worker: number): void => {
    if (unsettledWorkers.delete(worker)) forgetRemoved();
  };
  const forgetRemoved = (): void => {
    if (unsettledWorkers.size > 0) return;
    settings.dropUnconfigured();
    limitServer.retain(settings.isConfigured, (upstream) => settings.scopeOf(upstream) !== undefined);
  };
  const reloads = new ConfigReloads(
    { config: first, substituted },
    {
      source,
      logger,
      listen,
      wallClock: () => Date.now(),
      apply: async (next) => {
        if (next.log.level !== config.log.level) logger.level = next.log.level;
        config = next;
        workerConfig = deriveWorkerConfig(next, count, secret);
        settings.reconfigure(next);
        stateServer.configure(next);
        limitServer.onSettingsChanged([], clock.now());
        for (const worker of workers.all) unsettledWorkers.add(worker);
        forgetRemoved(); // at once if no worker runs
        const problems = await workers.reload({
          config: workerConfig,
          overrides: limitServer.overrideCommands(clock.now()),
        });
        // Terms of new limits are sent once all workers have the new configuration.
        limitServer.onSettingsChanged(settings.sharedRefs(), clock.now());
        timer.rearm();
        for (const problem of problems) logger.error({ problem }, 'worker cannot reload and is replaced');
      },
    },
  );

  for (const address of listenAddresses(first)) await removeStaleSocket(address);
  const readiness = () => ({ phase: isDraining ? 'draining' : workers.areAllServing ? 'ready' : 'starting' }) as const;
  const processes = new ClusterProcessGroup(processApi, workers, first);
  const operations = createOperations({
    processes,
    keys: ownState.inspection ?? processes.sharedKeys,
    clientQuotas: processes.sharedClientQuotas ?? stateServer.clientQuotas,
    ...{ deliveries: ownState.deliveries ?? processes.sharedDeliveries, clock, listen, secret },
    phase: () => readiness().phase,
    workers: count,
    version,
    reloads,
    certificates: metrics.certificates,
    drain: requestDrain ?? (() => void drain()),
  });
  const operatorOptions = { registry: merged, readiness, operations, logger, version, instance };
  operatorServers = await startOperatorOutputs(first, operatorOptions, resources);

  resources.push(() => workers.end('close', 0));
  const url = await workers.start();
  ownState.onServing();
  watchProcess({ processes, certificates: metrics.certificates, clock, listen }, resources);

  const drain = async (delay = first.drain.delay): Promise<void> => {
    isDraining = true;
    await sleep(delay);
    await workers.end('drain', first.drain.timeout);
    await resources.close();
  };

  return {
    url,
    adminUrl: operatorServers.adminUrl,
    telemetryUrl: operatorServers.telemetryUrl,
    practice,
    view,
    ...reloadControls(reloads),
    drain,
    close: resources.close,
  };
}
