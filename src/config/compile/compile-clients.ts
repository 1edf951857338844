/** Compiles what a configuration says of clients and their classes. */
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { classLimitName, clientLimitName } from '../../core/limits/limit-ref.ts';
import { formatQuotaPolicy, formatRatePolicy } from '../../http/headers/rate-limit-policy.ts';
import type { ClientClassRule, ClientNameRule, KeyOwnerRule } from '../../http/request/client-identity.ts';
import { compileGlob } from '../../http/request/glob.ts';
import type { ClassLimitRefs } from '../../http/request/route.ts';
import type { ClientAccess, Snapshot } from '../../http/request/snapshot-types.ts';
import type { Config } from '../schema/config-schema.ts';
import { namingIn } from '../schema/key-scope.ts';
import { compileClassQuotas } from './compile-quotas.ts';

export function compileClassLimitRefs(
  upstream: string,
  classes: Config['clients']['classes'],
): ReadonlyMap<string, ClassLimitRefs> {
  return new Map(
    Object.entries(classes).flatMap(([name, { maxRate, perClient }]) => {
      if (maxRate === undefined && perClient?.maxRate === undefined) return [];
      const shared: LimitRef = { upstream, nested: classLimitName(name), scope: 'upstream', key: '' };
      return [
        [
          name,
          {
            shared: maxRate === undefined ? undefined : shared,
            nestedOfClient: perClient?.maxRate === undefined ? undefined : clientLimitName(name),
          },
        ] as const,
      ];
    }),
  );
}

export function compileRatePolicies(clients: Pick<Config['clients'], 'classes' | 'auth'>): Snapshot['ratePolicies'] {
  return new Map(
    Object.entries(clients.classes).map(([name, ofName]) => {
      const { maxRate, perClient } = ofName;
      const shared = maxRate === undefined ? [] : [formatRatePolicy(classLimitName(name), maxRate)];
      const ofClient =
        perClient?.maxRate === undefined ? [] : [formatRatePolicy(clientLimitName(name), perClient.maxRate)];
      const [quotas] = compileClassQuotas({ ...clients, classes: { [name]: ofName } });
      const sharedQuotas = (quotas?.shared ?? []).map(formatQuotaPolicy);
      const quotasOfClient = (quotas?.perClient ?? []).map(formatQuotaPolicy);
      const proven = join([...shared, ...ofClient, ...sharedQuotas, ...quotasOfClient]);
      const unproven = join([...shared, ...(clients.auth === undefined ? sharedQuotas : [])]);
      return [name, { proven, unproven }] as const;
    }),
  );
}

function join(policies: readonly string[]): string | undefined {
  return policies.length === 0 ? undefined : policies.join(', ');
}

export function compileAccess(classes: Config['clients']['classes']): ReadonlyMap<string, ClientAccess> {
  const toSet = (names: readonly string[] | undefined): ReadonlySet<string> | undefined => names && new Set(names);
  return new Map(
    Object.entries(classes).flatMap(([name, { allow }]) =>
      allow === undefined ? [] : [[name, { routes: toSet(allow.routes), methods: toSet(allow.methods) }] as const],
    ),
  );
}

export function compileClientClasses(config: Config): ClientClassRule[] {
  return Object.entries(config.clients.classes).map(([name, { match, weight }]) => ({
    name,
    weight,
    headers: Object.entries(match.header ?? {}).map(
      ([header, glob]) => [header.toLowerCase(), compileGlob(glob)] as const,
    ),
    keys: (match.key ?? []).map(compileGlob),
  }));
}

/**
 * The kind of proven names has all settings that decide about one, so that all have the same kind until one of these changes. Without
 * accounts, no request needs the name of its client.
 */
export function compileKeyOwners(config: Config): KeyOwnerRule {
  const { names: keys, auth: { jwt, certificate } = {} } = namingIn(config);
  const settings = [jwt?.issuer, jwt?.nameClaim, jwt?.namePrefix, certificate?.name, certificate?.namePrefix];
  const hasAccounts = Object.values(config.upstreams).some(({ accounts }) => accounts !== undefined);
  return { keys: hasAccounts ? keys : [], proven: `name\0${JSON.stringify(settings)}` };
}

export function compileClientNames({ clients }: Config): ClientNameRule[] {
  return Object.entries(clients.names).map(([name, keys]) => ({ name, keys: keys.map(compileGlob) }));
}
