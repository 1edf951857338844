import { z } from 'zod';
import type { EnforcementMode } from '../../core/admission/gate-decision.ts';

export const EnforcementModeSchema = z.enum(['enforce', 'observe']);

interface Modes {
  readonly mode: EnforcementMode;
  readonly upstreams: Readonly<
    Record<string, { readonly mode?: EnforcementMode | undefined; readonly fallback?: string | undefined }>
  >;
}

interface RouteMode {
  readonly upstream: string;
  readonly mode?: EnforcementMode | undefined;
}

/** The mode of a route: its own, else that of its upstream, else that of the configuration. */
export function modeOfRoute({ mode, upstreams }: Modes, route: RouteMode): EnforcementMode {
  return route.mode ?? upstreams[route.upstream]?.mode ?? mode;
}

/** `observe` if all routes are observed. */
export function modeOfConfig(config: Modes & { readonly routes: readonly RouteMode[] }): EnforcementMode {
  return observedRoutes(config).length === config.routes.length ? 'observe' : 'enforce';
}

/** The routes in observe mode. */
export function observedRoutes<T extends RouteMode>(config: Modes & { readonly routes: readonly T[] }): T[] {
  return config.routes.filter((route) => modeOfRoute(config, route) === 'observe');
}

/** Whether each request to the upstream is observed, by a route to it or as a fallback. */
export function isObservedUpstream(config: Modes & { readonly routes: readonly RouteMode[] }, name: string): boolean {
  const modes = config.routes
    .filter(({ upstream }) => upstream === name || config.upstreams[upstream]?.fallback === name)
    .map((route) => modeOfRoute(config, { ...route, upstream: name }));
  if (modes.length === 0) return modeOfRoute(config, { upstream: name }) === 'observe';
  return modes.every((mode) => mode === 'observe');
}
