import type { RouteConfig } from './config-schema.ts';

/** As metrics and logs call it: its host and path, and its methods where two routes differ by nothing else. */
export function nameOf(route: Pick<RouteConfig, 'host' | 'path' | 'methods'>): string {
  const place = `${route.host ?? ''}${route.path}`;
  return route.methods === undefined ? place : `${route.methods.join(',')} ${place}`;
}
