import { createHash, randomBytes } from 'node:crypto';
import type { StateDatabase } from '../store/sqlite/state-database.ts';
import type { Config } from '../config/schema/config-schema.ts';

/**
 * The key of the client hashes. Replicas that share a store need the same hash for a client: without `secret`, the key is
 * derived from what they have in common, the prefix and password of the store.
 */
export function resolveHashSecret(
  { secret, state }: Config,
  database: Pick<StateDatabase, 'secret'> | undefined,
): string {
  if (secret !== undefined) return secret;
  if (state.store !== 'redis') return (database?.secret ?? randomBytes(32)).toString('hex');
  const password = state.password ?? state.url.password ?? '';
  return createHash('sha256').update(`tidegate\0${state.prefix}\0${password}`).digest('hex');
}
