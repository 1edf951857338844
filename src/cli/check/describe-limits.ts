import { listOf } from '../../config/rules/nested-limit-rules.ts';
import type { Config, UpstreamConfig } from '../../config/schema/config-schema.ts';
import { writeRate } from '../../config/values/unit-schemas.ts';
import { makePathPattern } from '../../core/http-semantics/path-pattern.ts';

/** What requests stand under at upstreams that have nested limits or limits of classes, outermost first, in lines. */
export function describeLimits({ upstreams, clients }: Config): string[] {
  const classes = Object.entries(clients.classes).flatMap(([name, { maxRate }]) =>
    maxRate === undefined ? [] : [`class ${name}: ${writeRate(maxRate)}, all its clients together`],
  );
  return Object.entries(upstreams).flatMap(([name, { rateLimit, limits }]) => {
    if (limits.length === 0 && classes.length === 0) return [];
    const nested = limits.map((limit) => `${limit.name}: ${tellMatch(limit)}, ${tellWhose(limit)}, ${tellRate(limit)}`);
    const own = `all requests: ${tellWhose({ scope: rateLimit.scope })}, ${tellRate(rateLimit)}`;
    return [
      `${name}: a request has to pass all that it stands under`,
      ...[own, ...classes, ...nested].map((line) => `  ${line}`),
    ];
  });
}

type Limit = UpstreamConfig['limits'][number];

/** Patterns that fit on a line. */
const MOST_TOLD = 3;

function tellMatch({ match: { path, method } }: Limit): string {
  const paths = listOf(path);
  const told = paths.length > MOST_TOLD ? [`${paths.length} paths such as ${paths[0]}`] : paths;
  const parts = [...(method === undefined ? [] : [listOf(method).join(' or ')]), ...told];
  return parts.length === 0 ? 'all requests' : parts.join(' ');
}

function tellWhose({ scope, each = [], match }: Pick<Limit, 'scope'> & Partial<Pick<Limit, 'each' | 'match'>>): string {
  const [pattern] = listOf(match?.path);
  const names = pattern === undefined || each.includes('path') ? [] : makePathPattern(pattern).names;
  const by = [...each, ...names];
  const whose = scope === 'upstream' ? (by.length === 0 ? 'one of all together' : 'one') : `one of each ${scope}`;
  return by.length === 0 ? whose : `${whose} for each ${by.join(' and ')}`;
}

function tellRate({ initialRate, maxRate }: Pick<Limit, 'initialRate' | 'maxRate'>): string {
  const begins = initialRate === undefined ? 'its rate is learned' : `from ${writeRate(initialRate)}`;
  return maxRate === undefined ? begins : `${begins}, at most ${writeRate(maxRate)}`;
}
