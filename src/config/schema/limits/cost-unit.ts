import type { Config } from '../config-schema.ts';

/**
 * Identifies what one unit is at a limit, by the different costs that are configured there: a learned rate in other units says nothing.
 * Undefined: a unit is a request, as where several
 * processes share limits.
 * @param nested the name of the nested limit; empty for the limit of the upstream
 */
export function costUnitOf(
  { upstreams, routes, workers, state }: Pick<Config, 'upstreams' | 'routes' | 'workers' | 'state'>,
  upstream: string,
  nested: string,
): string | undefined {
  if (workers !== 1 || state.store === 'redis') return undefined;
  const { rateLimit, limits = [] } = upstreams[upstream] ?? {};
  const costs =
    nested === ''
      ? [rateLimit?.cost, ...routes.filter((route) => route.upstream === upstream).map(({ cost }) => cost)]
      : [limits.find(({ name }) => name === nested)?.cost];
  const different = new Set(costs.flatMap((cost) => (cost === undefined ? [] : [JSON.stringify(cost)])));
  return different.size === 0 ? undefined : [...different].toSorted().join();
}
