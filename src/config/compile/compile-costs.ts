import type { RouteCost, RouteCosts } from '../../http/cost/route-costs.ts';
import type { Config, CostConfig, CostDetailsConfig, RouteConfig, UpstreamConfig } from '../schema/config-schema.ts';
import { costBounds } from '../schema/limits/cost-schema.ts';
import { costUnitOf } from '../schema/limits/cost-unit.ts';
import { toList } from '../values/one-or-many.ts';

/**
 * What the requests of a route cost; undefined: one unit at each limit. Processes that share limits count requests, so a preset has no
 * costs there.
 */
export function compileCosts(
  config: Pick<Config, 'workers' | 'state' | 'upstreams' | 'routes'>,
  upstream: UpstreamConfig,
  route: RouteConfig,
): RouteCosts | undefined {
  if (config.workers !== 1 || config.state.store === 'redis') return undefined;
  const shared = route.cost ?? upstream.rateLimit.cost;
  const unitOf = (nested: string) => costUnitOf(config, route.upstream, nested);
  const costs = [
    ...(shared === undefined ? [] : [compileCost('', shared, unitOf(''))]),
    ...upstream.limits.flatMap(({ name, cost }) => (cost === undefined ? [] : [compileCost(name, cost, unitOf(name))])),
  ];
  return costs.length === 0 ? undefined : { costs, rules: costs.map(({ rule }) => rule) };
}

/** @param limit the name of the nested limit; empty for the limit of the upstream @param unit see `CostRule` */
export function compileCost(limit: string, cost: CostConfig, unit?: string): RouteCost {
  const details: CostDetailsConfig = typeof cost === 'number' ? { method: {}, expected: cost } : cost;
  const { method, request, response } = details;
  const { bucket } = response ?? {};
  return {
    rule: { limit, ...costBounds(details), isSettled: response !== undefined, unit },
    byMethod: new Map(Object.entries(method).flatMap(([verb, units]) => (units === undefined ? [] : [[verb, units]]))),
    request:
      compileHeader(request) ??
      (request?.json === undefined ? undefined : { kind: 'json', field: request.json.split('.') }),
    response:
      compileHeader(response) ??
      (response?.json === undefined
        ? undefined
        : { kind: 'json', fields: toList(response.json).map((field) => field.split('.')) }),
    bucket: bucket && {
      available: bucket.available.split('.'),
      limit: bucket.limit.split('.'),
      refillRate: bucket.refillRate.split('.'),
    },
  };
}

function compileHeader(source: { readonly header?: string | undefined } | undefined) {
  return source?.header === undefined ? undefined : ({ kind: 'header', name: source.header.toLowerCase() } as const);
}
