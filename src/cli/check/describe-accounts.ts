import type { Config } from '../../config/schema/config-schema.ts';
import { recognisesKeys } from '../../config/schema/idempotency-schema.ts';
import { formatClientKey, namesClient } from '../../config/schema/clients-schema.ts';
import { keyScopeOf } from '../../config/schema/key-scope.ts';

/** The accounts of upstreams, and which idempotency keys these get: a line each. */
export function describeAccounts({ upstreams, clients }: Config): string[] {
  return Object.entries(upstreams).flatMap(([name, upstream]) => {
    const { accounts, idempotency } = upstream;
    if (accounts === undefined) return [];
    const line = `${name}: ${accounts.map((account) => account.name).join(', ')}`;
    if (!recognisesKeys(idempotency)) return [line];
    const scope = keyScopeOf(upstream, clients);
    return [`${line}; ${KEYS[scope]}${scope === 'client' ? describeNameless(clients) : ''}`];
  });
}

/** Without `clients.auth`, a request may lack all that names its client. */
function describeNameless({ auth, key }: Config['clients']): string {
  if (auth !== undefined) return '';
  const names = key.filter(namesClient).map(formatClientKey).join(' or ');
  return `; clients without ${names} share one set of keys`;
}

const KEYS = {
  client: 'an idempotency key is sent as a UUID that is derived from the client and its key (keyScope: client)',
  shared: 'idempotency keys are sent as they are: equal keys of two clients are one key there (keyScope: shared)',
} as const;
