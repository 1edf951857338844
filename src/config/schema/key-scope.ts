/** Whose idempotency keys are compared at an upstream with accounts. */
import type { ClientKey } from './clients-schema.ts';
import type { Config, UpstreamConfig } from './config-schema.ts';
import { recognisesKeys } from './idempotency-schema.ts';

export type KeyScope = 'client' | 'shared';

/** What names clients for as long as they use an idempotency key. */
export interface ClientNaming {
  /** All of `clients.key`. */
  readonly keys: readonly ClientKey[];
  /** Those that are such names. */
  readonly names: readonly ClientKey[];
  readonly auth: Config['clients']['auth'];
}

/** Tokens and sessions, which are renewed, and addresses, which change. */
const CHANGING_HEADERS = ['authorization', 'proxy-authorization', 'cookie', 'x-forwarded-for', 'forwarded'] as const;

/** @param upstreams also those without accounts. A header that is the credential of a client at one with accounts is a token */
export function namingOf(
  { key, auth }: { readonly key: readonly ClientKey[]; readonly auth?: Config['clients']['auth'] },
  upstreams: Iterable<{
    readonly accounts?: unknown;
    readonly rateLimit?: Pick<UpstreamConfig['rateLimit'], 'credentialHeader'> | undefined;
  }>,
): ClientNaming {
  const changing = new Set<string>(CHANGING_HEADERS);
  for (const { accounts, rateLimit } of upstreams) {
    if (accounts !== undefined && rateLimit !== undefined) changing.add(rateLimit.credentialHeader.toLowerCase());
  }
  const isName = (each: ClientKey): boolean =>
    each.kind === 'path' || (each.kind === 'header' && !changing.has(each.name.toLowerCase()));
  return { keys: key, names: key.filter(isName), auth };
}

/** The naming of a configuration. */
export function namingIn({ clients, upstreams }: Pick<Config, 'clients' | 'upstreams'>): ClientNaming {
  return namingOf(clients, Object.values(upstreams));
}

/** Whether clients have names that last: proven ones, or those in a header or the path. */
export function distinguishesClients({ names, auth }: ClientNaming): boolean {
  return auth !== undefined || names.length > 0;
}

/** Whether a client that has not proven its name may have none: its request may lack a header. */
export function mayLackName({ names }: Pick<ClientNaming, 'names'>): boolean {
  return !names.some((each) => each.kind === 'path');
}

/**
 * `client`: two clients never use the same key at the upstream. Through accounts, all clients use one credential, so this is the default
 * wherever clients have names. Without accounts, it is always `shared`: the credential of a client separates its keys.
 */
export function keyScopeOf(
  { accounts, idempotency }: Pick<UpstreamConfig, 'accounts' | 'idempotency'>,
  naming: ClientNaming,
): KeyScope {
  if (accounts === undefined || !recognisesKeys(idempotency)) return 'shared';
  return idempotency.keyScope ?? (distinguishesClients(naming) ? 'client' : 'shared');
}
