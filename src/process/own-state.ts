import { uptime } from 'node:os';
import type { Logger } from 'pino';
import type { Config } from '../config/schema/config-schema.ts';
import type { DeliveryStore } from '../core/delivery/delivery-store.ts';
import type { KeyInspection } from '../core/idempotency/key-inspection.ts';
import type { UpstreamQuotasParts } from '../core/quota/calendar/upstream-quotas.ts';
import type { QuotaJournal } from '../core/quota/calendar/quota-journal.ts';
import type { Clock, Millis } from '../core/scalars.ts';
import type { EventSink } from '../core/events/proxy-events.ts';
import type { OpenWriteLog } from '../core/idempotency/open-writes.ts';
import type { ResponseStore } from '../core/idempotency/response-store.ts';
import type { RegistryKeyStore } from '../core/idempotency/registry-key-store.ts';
import { RegistryKeyInspection } from '../admin/operations/registry-key-inspection.ts';
import { KeptResponses } from '../http/idempotency/kept-responses.ts';
import { createKeyStore, createKeySecret } from '../http/idempotency/create-key-store.ts';
import { WriteDigests } from '../http/idempotency/write-digests.ts';
import type { WriteKeys } from '../http/request/exchange-context.ts';
import { MemoryResponseStore } from '../store/responses/memory-response-store.ts';
import type { StateDatabase } from '../store/sqlite/state-database.ts';
import type { StoredWriteCounts } from '../store/sqlite/stored-writes.ts';
import type { StoredWorkerProcesses } from '../store/sqlite/stored-worker-processes.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { awaitEarlierWorkers } from './cluster/earlier-workers.ts';
import { resolveHashSecret } from './client-hash-secret.ts';
import { reportInSteps, reportInterrupted } from './interrupted-writes.ts';
import { type DeliveryStoreHooks, openDeliveryStore } from './deliveries/open-delivery-store.ts';
import type { ResourceStack } from './resource-stack.ts';
import type { LimitSharing } from './sharing/limit-sharing.ts';

/** A step of the wall clock is stored at most so much later, and the time of a first send: without other writes, nothing else does it. */
const CLOCK_CHECK_INTERVAL: Millis = 2000;

/** How often some rows of the database are looked at: those of quotas of clients that were not seen for long are removed. */
const CLEAN_UP_INTERVAL: Millis = 60_000;

/** What a process keeps itself, for its workers too. */
export interface OwnState {
  readonly keyStore: RegistryKeyStore;
  /** For the digests of keys of writes. */
  readonly keySecret: Buffer;
  readonly writeKeys: WriteKeys;
  readonly responseStore: ResponseStore;
  /** Undefined if Redis has the keys. */
  readonly inspection: KeyInspection | undefined;
  /** The writes in the database, by state. */
  readonly storedWrites: () => StoredWriteCounts;
  /** Undefined if open writes are not reported after the end of this process. */
  readonly openWrites: OpenWriteLog | undefined;
  /** The key of the hashes of clients. */
  readonly secret: string;
  /** Undefined if nothing outlives this process, or only a file with learned state. */
  readonly database: StateDatabase | undefined;
  /** Undefined without a database. */
  readonly deliveries: DeliveryStore | undefined;
  /** Undefined if the counts of calendar quotas end with this process. */
  readonly quotas: QuotaJournal | undefined;
  /** Undefined if no later process asks whether they still run. */
  readonly workerProcesses: StoredWorkerProcesses | undefined;
  /** To be called when the start has succeeded: reports the writes that the end of an earlier process interrupted. */
  onServing(): void;
}

export interface OwnStateParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly listen: EventSink;
  /** Counts the commits of the database, and shows the routes of its deliveries. */
  readonly metrics: Pick<Metrics, 'countCommit' | 'addDeliveryRoute'>;
  /** Undefined: this process delivers nothing. */
  readonly deliveryHooks?: DeliveryStoreHooks;
}

/** Opens the database of the configuration, if it names one, and restores the keys of writes. @throws StateDatabaseError */
export async function openOwnState(config: Config, parts: OwnStateParts, resources: ResourceStack): Promise<OwnState> {
  const { state, limits } = config;
  const keptResponses = { maxCount: limits.keptResponses };
  const keyStore = createKeyStore(parts.clock);
  const opened = state.store === 'sqlite' ? await openDatabase(config, state, keyStore, parts, resources) : NO_DATABASE;
  const { database } = opened;
  const keySecret = database?.secret ?? createKeySecret();
  const digests = new WriteDigests(keySecret);
  const { responseStore = new MemoryResponseStore(parts.clock, keptResponses) } = opened;
  const writeKeys = { keys: keyStore, digests, responses: new KeptResponses(responseStore) };
  const inspection =
    state.store === 'redis'
      ? undefined
      : new RegistryKeyInspection(keyStore.keys, responseStore, (key) => digests.digestKey(key));
  const secret = resolveHashSecret(config, database);
  return { ...opened, keyStore, keySecret, writeKeys, responseStore, inspection, secret };
}

/** How this process counts calendar quotas. @param shared where it leases parts of them, if it does not count them itself */
export function quotaParts(
  state: OwnState | Pick<OwnState, 'openWrites'>,
  clock: Clock,
  shared?: LimitSharing['quotas'],
): UpstreamQuotasParts {
  const leased = shared && { makeQuota: shared.client.makeQuota, leaseWait: shared.leaseWait };
  const wallTimeAt = (now: Millis): Millis => now + Date.now() - clock.now();
  return { wallTimeAt, journal: 'quotas' in state ? state.quotas : undefined, ...leased };
}

type OpenedDatabase = Pick<
  OwnState,
  'database' | 'deliveries' | 'openWrites' | 'quotas' | 'storedWrites' | 'workerProcesses' | 'onServing'
> & {
  /** Undefined if responses are kept in memory. */
  readonly responseStore: ResponseStore | undefined;
};

const NO_DATABASE: OpenedDatabase = {
  database: undefined,
  deliveries: undefined,
  openWrites: undefined,
  quotas: undefined,
  storedWrites: () => ({ unresolved: 0, answered: 0 }),
  workerProcesses: undefined,
  onServing: () => undefined,
  responseStore: undefined,
};

/** Loads the modules only where they are used: SQLite takes memory. */
async function openDatabase(
  { drain, secret, limits }: Pick<Config, 'drain' | 'secret' | 'limits'>,
  state: Extract<Config['state'], { readonly store: 'sqlite' }>,
  { keys }: RegistryKeyStore,
  { clock, logger, listen, metrics, deliveryHooks }: OwnStateParts,
  resources: ResourceStack,
): Promise<OpenedDatabase> {
  const { StateDatabase } = await import('../store/sqlite/state-database.ts');
  const { StateDatabaseError } = await import('../store/sqlite/state-database-error.ts');
  const { GroupCommit } = await import('../store/sqlite/group-commit.ts');
  const { StoredWrites } = await import('../store/sqlite/stored-writes.ts');
  const { StoredOpenWrites } = await import('../store/sqlite/stored-open-writes.ts');
  const { StoredQuotas } = await import('../store/sqlite/stored-quotas.ts');
  const { StoredResponses } = await import('../store/sqlite/stored-responses.ts');
  const { sealResponses } = await import('../store/responses/sealed-response-store.ts');
  const { StoredWorkerProcesses } = await import('../store/sqlite/stored-worker-processes.ts');
  const database = new StateDatabase(state);
  const { file } = database;
  if (database.hasLostEnd) {
    logger.warn(
      { file },
      'the last idempotency keys before a loss of power are lost: repeats of these writes are sent again',
    );
  }
  const commit = new GroupCommit({
    db: database.db,
    prepare: () => database.markInUse(),
    clock,
    onCommit: metrics.countCommit,
    schedule: (delay, run) => void (delay === 0 ? setImmediate(run) : setTimeout(run, delay).unref()),
    onProblem: (error) => {
      if (error === undefined) return logger.info({ file }, 'idempotency keys are stored again');
      logger.error(
        { file, why: describe(error) },
        'idempotency keys cannot be stored: onStoreLost applies to writes with keys',
      );
    },
  });
  const onQuotaProblem = (error: unknown): void => {
    if (error === undefined) return logger.info({ file }, 'the counts of quotas are stored again');
    logger.error(
      { file, why: describe(error) },
      'the counts of quotas cannot be stored: a restart would forget requests',
    );
  };
  const quotas = database.read(() => new StoredQuotas(database.db, onQuotaProblem));
  quotas.removeEnded(Date.now());
  const cleanUp = setInterval(() => quotas.removeEnded(Date.now()), CLEAN_UP_INTERVAL).unref();
  const checkClock = setInterval(() => commit.request(), CLOCK_CHECK_INTERVAL).unref();
  resources.push(() => {
    clearInterval(checkClock);
    clearInterval(cleanUp);
    quotas.close();
    commit.flush();
    database.close();
    return Promise.resolve();
  });
  const onWorkerProblem = (error: unknown): void =>
    logger.error(
      { file, why: describe(error) },
      'a worker process cannot be stored: after a kill, a start may not wait for it',
    );
  const workerProcesses = database.read(() => new StoredWorkerProcesses(database.db, onWorkerProblem));
  const left = database.read(() => workerProcesses.load());
  const running = await awaitEarlierWorkers(left, { logger, timeout: drain.timeout });
  if (running.length > 0) {
    const pids = running.join(', ');
    throw new StateDatabaseError(
      `state.file: workers of an earlier process still run with ${file} (pid ${pids}): end them`,
    );
  }
  const onDecidedLocally = (upstream: string): void => listen({ type: 'key', upstream, event: 'decided_locally' });
  const clocks = { clock, wallClock: () => Date.now(), uptime: () => uptime() * 1000 };
  const writes = database.read(() => new StoredWrites({ commit, ...clocks, onDecidedLocally }));
  const stored = database.read(() => writes.load());
  keys.resume(stored, writes);
  const unresolved = stored.filter(([, { state: known }]) => known === 'unresolved').length;
  logger.info({ file, writes: stored.length, unresolved }, 'restored idempotency keys');
  const openWrites = database.read(() => new StoredOpenWrites(commit));
  const interrupted = database.read(() => openWrites.load());
  const onServing = (): void =>
    reportInSteps(interrupted.splice(0), {
      report: (write) => reportInterrupted(write, logger, listen, left.length > 0),
      flush: (done) => logger.flush(() => database.db.isOpen && done()),
      ...{ openWrites, commit },
      onDone: () => {
        for (const worker of left) workerProcesses.remove(worker);
      },
    });
  const storedResponses = database.read(
    () => new StoredResponses({ commit, steadyTime: () => writes.steadyTime(), maxCount: limits.keptResponses }),
  );
  const messageSecret = secret ?? database.secret.toString('hex'); // `deliver` needs a secret: without one, none are accepted
  const deliveryParts = {
    commit,
    secret: messageSecret,
    limits,
    logger,
    listen,
    clockShift: () => writes.clockShift(),
    onRoute: metrics.addDeliveryRoute,
  };
  const deliveries = deliveryHooks && (await openDeliveryStore({ ...deliveryParts, ...deliveryHooks }));
  return {
    database,
    deliveries,
    openWrites,
    quotas,
    storedWrites: () => writes.counts,
    workerProcesses,
    onServing,
    responseStore: sealResponses(storedResponses, secret),
  };
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown error';
}
