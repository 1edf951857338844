import type { PartialConfig, PartialRoute } from '../load/partial-config.ts';

/** The mode of a route: see `modeOfRoute`. Undefined if it is invalid. */
export function partialModeOf(
  { mode, upstreams }: PartialConfig,
  route: Pick<PartialRoute, 'mode' | 'upstream'>,
): PartialConfig['mode'] {
  return route.mode ?? (route.upstream === undefined ? undefined : upstreams.get(route.upstream)?.mode) ?? mode;
}
