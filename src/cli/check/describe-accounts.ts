import type { Config } from '../../config/schema/config-schema.ts';
import { recognisesKeys } from '../../config/schema/idempotency-schema.ts';
import { formatClientKey } from '../../config/schema/clients-schema.ts';
import { type ClientNaming, keyScopeOf, namingIn } from '../../config/schema/key-scope.ts';

/** The accounts of upstreams, and which idempotency keys these get: a line each. */
export function describeAccounts(config: Config): string[] {
  const naming = namingIn(config);
  return Object.entries(config.upstreams).flatMap(([name, upstream]) => {
    const { accounts, idempotency } = upstream;
    if (accounts === undefined) return [];
    const line = `${name}: ${accounts.map((account) => account.name).join(', ')}`;
    if (!recognisesKeys(idempotency)) return [line];
    const scope = keyScopeOf(upstream, naming);
    return [`${line}; ${KEYS[scope]}${scope === 'client' ? describeNameless(naming) : ''}`];
  });
}

/** Without `clients.auth`, a request may lack all that names its client. */
function describeNameless({ auth, names }: ClientNaming): string {
  if (auth !== undefined) return '';
  return `; clients without ${names.map(formatClientKey).join(' or ')} share one set of keys`;
}

const KEYS = {
  client: 'an idempotency key is sent as a UUID that is derived from the client and its key (keyScope: client)',
  shared:
    'idempotency keys are sent as they are: two clients that send the same key share one write at the upstream (keyScope: shared)',
} as const;
