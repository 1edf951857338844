import type { CostRule } from '../../core/cost/cost-rule.ts';
import type { CostSource, RouteCost, RouteCosts } from '../../http/cost/route-costs.ts';
import type { Config, CostConfig, CostDetailsConfig, RouteConfig, UpstreamConfig } from '../schema/config-schema.ts';
import { costBounds } from '../schema/limits/cost-schema.ts';
import { toList } from '../values/one-or-many.ts';

/**
 * What the requests of a route cost; undefined: one unit at each limit. Processes that share limits count requests, so a preset has no
 * costs there.
 */
export function compileCosts(
  config: Pick<Config, 'workers' | 'state'>,
  upstream: UpstreamConfig,
  route: RouteConfig,
): RouteCosts | undefined {
  if (config.workers !== 1 || config.state.store === 'redis') return undefined;
  const shared = route.cost ?? upstream.rateLimit.cost;
  const costs = [
    ...(shared === undefined ? [] : [compileCost('', shared)]),
    ...upstream.limits.flatMap(({ name, cost }) => (cost === undefined ? [] : [compileCost(name, cost)])),
  ];
  return costs.length === 0 ? undefined : { costs, rules: costs.map(({ rule }) => rule) };
}

/** @param limit the name of the nested limit; empty for the limit of the upstream */
export function compileCost(limit: string, cost: CostConfig): RouteCost {
  const details: CostDetailsConfig = typeof cost === 'number' ? { method: {}, expected: cost } : cost;
  const { method, request, response, expected } = details;
  const bounds = costBounds(details);
  const costs = [expected, ...Object.values(method).flatMap((units) => units ?? [])];
  // What the configuration says itself needs no bounds.
  const rule: CostRule = {
    limit,
    expected,
    min: request === undefined ? Math.min(bounds.min, ...costs) : bounds.min,
    max: Math.max(bounds.max, ...costs),
    isSettled: response !== undefined,
  };
  const { bucket } = response ?? {};
  return {
    rule,
    byMethod: new Map(Object.entries(method).flatMap(([verb, units]) => (units === undefined ? [] : [[verb, units]]))),
    request: compileSource(request),
    response: compileSource(response),
    bucket: bucket && {
      available: bucket.available.split('.'),
      limit: bucket.limit.split('.'),
      refillRate: bucket.refillRate.split('.'),
    },
  };
}

function compileSource(source: Pick<NonNullable<CostDetailsConfig['request']>, 'header' | 'json'> | undefined) {
  return source === undefined ? undefined : toSource(source);
}

function toSource({ header, json }: NonNullable<CostDetailsConfig['request']>): CostSource | undefined {
  if (header !== undefined) return { kind: 'header', name: header.toLowerCase() };
  return json === undefined ? undefined : { kind: 'json', fields: toList(json).map((field) => field.split('.')) };
}
