import { createHash, randomBytes } from 'node:crypto';
import type { Config } from '../config/schema/config-schema.ts';

/**
 * What keys the hashes of clients. Replicas that share a store have to call a client the same: where nobody gave them a
 * secret, it is made of what they have in common, the store's prefix and password.
 */
export function secretOf({ secret, state }: Config): string {
  if (secret !== undefined) return secret;
  if (state.store === 'memory') return randomBytes(32).toString('hex');
  const password = state.password ?? state.url.password ?? '';
  return createHash('sha256').update(`tidegate\0${state.prefix}\0${password}`).digest('hex');
}
