/** Whether what is learned outlives this process: most keep it nowhere, and need not read what that needs. */
import type { Logger } from 'pino';
import type { Config } from '../../config/schema/config-schema.ts';
import type { LimitView } from '../../core/events/proxy-events.ts';
import type { Clock } from '../../core/exchange/attempt-outcome.ts';
import type { Learned } from './learned-state.ts';
import type { Hold } from '../../sharing/workers/worker-protocol.ts';

export interface StateParts {
  readonly clock: Clock;
  readonly limits: () => Iterable<LimitView>;
  readonly holds: (most: number) => readonly Hold[];
  readonly restore: (learned: Learned) => void;
  readonly upstreams: () => Config['upstreams'];
}

export interface KeptState {
  /** Writes it for the last time. */
  stop(): Promise<void>;
}

const NOT_KEPT: KeptState = { stop: () => Promise.resolve() };

/**
 * Restores what the file holds, if the configuration names one, and keeps it up to date. Never rejects: without it, all is
 * learned anew.
 * @param secret that keys the hashes of clients
 */
export async function keepState(
  { state, secret: given }: Pick<Config, 'state' | 'secret'>,
  secret: string,
  logger: Logger,
  parts: StateParts,
): Promise<KeptState> {
  if (state.store !== 'memory' || state.file === undefined) return NOT_KEPT;
  const { StateFile } = await import('./state-file.ts');
  // Of a secret that is made up at each start, the hashes mean nothing to the next process.
  const kept = new StateFile(state.file, given === undefined ? undefined : secret, logger, parts);
  kept.restore();
  return kept;
}
