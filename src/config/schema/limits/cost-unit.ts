import type { Config } from '../config-schema.ts';

/**
 * Identifies what one unit is at a limit: a learned rate in other units says nothing. Undefined: a unit is a request, as where several
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
  return costs.every((cost) => cost === undefined) ? undefined : JSON.stringify(costs);
}
