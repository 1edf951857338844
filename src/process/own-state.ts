import type { Logger } from 'pino';
import type { Config } from '../config/schema/config-schema.ts';
import type { Clock } from '../core/scalars.ts';
import type { RegistryKeyStore } from '../core/idempotency/registry-key-store.ts';
import { createKeyStore, createKeySecret } from '../http/idempotency/create-key-store.ts';
import { WriteDigests } from '../http/idempotency/write-digests.ts';
import type { WriteKeys } from '../http/request/exchange-context.ts';
import type { StateDatabase } from '../store/sqlite/state-database.ts';
import { resolveHashSecret } from './client-hash-secret.ts';
import type { ResourceStack } from './resource-stack.ts';

/** What a process keeps itself, for its workers too. */
export interface OwnState {
  readonly keyStore: RegistryKeyStore;
  /** For the digests of keys of writes. */
  readonly keySecret: Buffer;
  readonly writeKeys: WriteKeys;
  /** The key of the hashes of clients. */
  readonly secret: string;
  /** Undefined if nothing outlives this process, or only a file with learned state. */
  readonly database: StateDatabase | undefined;
}

/** Opens the database of the configuration, if it names one, and restores the keys of writes. @throws StateDatabaseError */
export async function openOwnState(
  config: Config,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  resources: ResourceStack,
): Promise<OwnState> {
  const { state } = config;
  const keyStore = createKeyStore(clock);
  const database = state.store === 'sqlite' ? await openDatabase(state) : undefined;
  if (database !== undefined) await restoreKeys(database, keyStore, clock, logger, resources);
  const keySecret = database?.secret ?? createKeySecret();
  const writeKeys = { keys: keyStore, digests: new WriteDigests(keySecret) };
  return { keyStore, keySecret, writeKeys, secret: resolveHashSecret(config, database), database };
}

/** Loads the module only where it is used: SQLite takes memory. */
async function openDatabase(state: Extract<Config['state'], { readonly store: 'sqlite' }>): Promise<StateDatabase> {
  const { StateDatabase } = await import('../store/sqlite/state-database.ts');
  return new StateDatabase(state);
}

async function restoreKeys(
  database: StateDatabase,
  { keys }: RegistryKeyStore,
  clock: Clock,
  logger: Logger,
  resources: ResourceStack,
): Promise<void> {
  const { file } = database;
  const { StoredWrites } = await import('../store/sqlite/stored-writes.ts');
  const writes = new StoredWrites({
    db: database.db,
    clock,
    wallClock: () => Date.now(),
    schedule: (delay, run) => void (delay === 0 ? setImmediate(run) : setTimeout(run, delay).unref()),
    onProblem: (error) => {
      if (error === undefined) return logger.info({ file }, 'idempotency keys are stored again');
      const why = error instanceof Error ? error.message : 'unknown error';
      logger.error({ file, why }, 'idempotency keys cannot be stored: writes with keys are refused');
    },
  });
  const stored = writes.load();
  keys.resume(stored, writes);
  const open = stored.filter(([, { state }]) => state === 'unresolved').length;
  logger.info({ file, writes: stored.length, unresolved: open }, 'restored idempotency keys');
  resources.push(() => {
    writes.flush();
    database.close();
    return Promise.resolve();
  });
}
