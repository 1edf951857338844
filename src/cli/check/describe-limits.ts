import { toList } from '../../config/values/one-or-many.ts';
import { limitScopeOf } from '../../config/schema/upstream-schema.ts';
import type { Config, UpstreamConfig } from '../../config/schema/config-schema.ts';
import { formatPer } from '../../config/schema/limits/quota-schema.ts';
import { formatRate } from '../../config/values/unit-schemas.ts';
import { makePathPattern } from '../../core/http-semantics/path-pattern.ts';

/** The limits of upstreams with nested limits or class limits, outermost first, one line each. */
export function describeLimits({ upstreams, clients }: Config): string[] {
  const classes = Object.entries(clients.classes).flatMap(([name, { maxRate, quota, perClient }]) => [
    ...describeClass(`class ${name}`, { maxRate, quota }, 'all its clients together'),
    ...describeClass(`class ${name}`, perClient ?? {}, 'each of its clients'),
  ]);
  return Object.entries(upstreams).flatMap(([name, { rateLimit, limits, accounts }]) => {
    if (limits.length === 0 && classes.length === 0) return [];
    const nested = limits.map(
      (limit) => `${limit.name}: ${describeMatch(limit)}, ${describeScope(limit)}, ${describeRate(limit)}`,
    );
    const own = `all requests: ${describeScope({ scope: limitScopeOf({ rateLimit, accounts }) })}, ${describeRate(rateLimit)}`;
    return [
      `${name}: a request needs a token of every limit that applies to it`,
      ...[own, ...classes, ...nested].map((line) => `  ${line}`),
    ];
  });
}

function describeClass(
  name: string,
  { maxRate, quota }: Pick<Config['clients']['classes'][string], 'maxRate' | 'quota'>,
  whom: string,
): string[] {
  const quotas = toList(quota).map(({ limit, per, timezone }) => {
    const zone = per.kind === 'rolling' || timezone === undefined ? '' : ` in ${timezone}`;
    return `${name}: ${limit} requests per ${formatPer(per)}${zone} for ${whom}`;
  });
  return [...(maxRate === undefined ? [] : [`${name}: ${formatRate(maxRate)} for ${whom}`]), ...quotas];
}

type LimitConfig = UpstreamConfig['limits'][number];

/** More paths than this are summarised. */
const MAX_PATHS_SHOWN = 3;

function describeMatch({ match: { path, method } }: LimitConfig): string {
  const paths = toList(path);
  const shown = paths.length > MAX_PATHS_SHOWN ? [`${paths.length} paths such as ${paths[0]}`] : paths;
  const parts = [...(method === undefined ? [] : [toList(method).join(' or ')]), ...shown];
  return parts.length === 0 ? 'all requests' : parts.join(' ');
}

function describeScope({
  scope,
  each = [],
  match,
}: Pick<LimitConfig, 'scope'> & Partial<Pick<LimitConfig, 'each' | 'match'>>): string {
  const [pattern] = toList(match?.path);
  const names = pattern === undefined || each.includes('path') ? [] : makePathPattern(pattern).names;
  const keys = [...(scope === 'upstream' ? [] : [scope]), ...each, ...names];
  return keys.length === 0 ? 'one limit for all' : `one limit per ${keys.join(' and ')}`;
}

function describeRate({ initialRate, maxRate }: Pick<LimitConfig, 'initialRate' | 'maxRate'>): string {
  const start = initialRate === undefined ? 'rate learned' : `rate learned from ${formatRate(initialRate)}`;
  return maxRate === undefined ? start : `${start}, at most ${formatRate(maxRate)}`;
}
