/** Stores learned state across restarts, if the configuration names a file. Other processes load none of its code. */
import type { ClientHold } from '../../core/limits/client-holds.ts';
import type { Logger } from 'pino';
import type { Config } from '../../config/schema/config-schema.ts';
import type { LimitView } from '../../core/events/gate-views.ts';
import type { Clock } from '../../core/scalars.ts';
import type { StateDatabase } from '../sqlite/state-database.ts';
import type { LearnedState } from './learned-state.ts';

export interface StatePersistenceParts {
  readonly clock: Clock;
  readonly limits: () => Iterable<LimitView>;
  readonly activeHolds: (max: number) => readonly ClientHold[];
  readonly restore: (learned: LearnedState) => void;
  readonly config: () => Config;
}

export interface StatePersistence {
  /** Writes the state for the last time. */
  stop(): Promise<void>;
}

const NO_PERSISTENCE: StatePersistence = { stop: () => Promise.resolve() };

/**
 * Restores the state of the configured file, and keeps the file up to date. Never rejects: without a usable file, the process
 * learns from the start.
 * @param kept `secret`: the key of the hashes of clients
 */
export async function openStatePersistence(
  { state, secret: configuredSecret }: Pick<Config, 'state' | 'secret'>,
  { secret, database }: { readonly secret: string; readonly database?: StateDatabase | undefined },
  logger: Logger,
  parts: StatePersistenceParts,
): Promise<StatePersistence> {
  const place = database ?? (state.store === 'memory' ? state.file : undefined);
  if (place === undefined) return NO_PERSISTENCE;
  const { StateFile, openMedium } = await import('./state-file.ts');
  // Without a configured secret and a database, each process has a random one: its hashes mean nothing to the next process.
  const isKept = configuredSecret !== undefined || database !== undefined;
  const stateFile = new StateFile(openMedium(place), isKept ? secret : undefined, logger, parts);
  stateFile.restore();
  return stateFile;
}
