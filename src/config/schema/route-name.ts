import type { RouteConfig } from './config-schema.ts';

/** The name of a route in metrics and logs: its methods, if it has any, host and path. */
export function routeName(route: Pick<RouteConfig, 'host' | 'path' | 'methods'>): string {
  const hostAndPath = `${route.host ?? ''}${route.path}`;
  return route.methods === undefined ? hostAndPath : `${route.methods.join(',')} ${hostAndPath}`;
}
