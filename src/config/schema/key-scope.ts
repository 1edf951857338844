/** Whose idempotency keys are compared at an upstream with accounts. */
import { type ClientKey, namesClient } from './clients-schema.ts';
import type { Config, UpstreamConfig } from './config-schema.ts';
import { recognisesKeys } from './idempotency-schema.ts';

export type KeyScope = 'client' | 'shared';

/** The parts of `clients` that name clients. */
export interface ClientNaming {
  readonly key: readonly ClientKey[];
  readonly auth?: Config['clients']['auth'];
}

/** Whether clients have names that last: proven ones, or those in a header or the path. */
export function distinguishesClients({ key, auth }: ClientNaming): boolean {
  return auth !== undefined || key.some(namesClient);
}

/** Whether a client that has not proven its name may have none: its request may lack a header. */
export function mayLackName({ key }: Pick<ClientNaming, 'key'>): boolean {
  return !key.some((each) => each.kind === 'path');
}

/**
 * `client`: two clients never use the same key at the upstream. Through accounts, all clients use one credential, so this is the default
 * wherever clients have names. Without accounts, it is always `shared`: the credential of a client separates its keys.
 */
export function keyScopeOf(
  { accounts, idempotency }: Pick<UpstreamConfig, 'accounts' | 'idempotency'>,
  clients: ClientNaming,
): KeyScope {
  if (accounts === undefined || !recognisesKeys(idempotency)) return 'shared';
  return idempotency.keyScope ?? (distinguishesClients(clients) ? 'client' : 'shared');
}
