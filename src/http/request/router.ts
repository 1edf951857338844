import type { Route } from './route.ts';
import { ASTERISK } from './request-target.ts';

/** Finds the route of a request: the longest prefix wins, then one with a host or methods over one without. */
export class Router {
  readonly #routes: readonly Route[];
  readonly #matchesHosts: boolean;
  /** Some route has a CORS policy. */
  readonly hasCors: boolean;
  /** Routes whose requests are stored and delivered later, or may be. */
  readonly delivering: readonly Route[];
  /**
   * Routes whose paths must not be reached by another route: they need a signature, a credential or a permission. Those that lead to
   * a fallback are listed for both upstreams.
   */
  readonly guarded: readonly Route[];

  constructor(routes: readonly Route[]) {
    this.delivering = routes.filter(({ delivery, asyncWrites }) => (delivery ?? asyncWrites) !== undefined);
    this.hasCors = routes.some(({ cors }) => cors !== undefined);
    this.guarded = routes
      .filter((route) => route.verify !== undefined || !route.isPublic || route.isRestricted)
      .flatMap((route) => (route.fallback === undefined ? [route] : [route, route.fallback]));
    this.#matchesHosts = routes.some(({ host }) => host !== undefined);
    this.#routes = [...routes].toSorted(
      (a, b) =>
        b.path.length - a.path.length ||
        Number(b.host !== undefined) - Number(a.host !== undefined) ||
        Number(b.methods !== undefined) - Number(a.methods !== undefined),
    );
  }

  /**
   * @param method undefined: ignore the methods of routes
   * @param path `*` is routed like `/`
   */
  find(method: string | undefined, host: string | undefined, path: string): Route | undefined {
    const name = host === undefined || !this.#matchesHosts ? undefined : normalizeHost(host);
    for (const route of this.#routes) {
      if (!hasPrefix(path === ASTERISK ? '/' : path, route.path)) continue;
      if (route.host !== undefined && route.host !== name) continue;
      if (method !== undefined && route.methods !== undefined && !route.methods.has(method)) continue;
      return route;
    }
    return undefined;
  }

  /**
   * The route of a CORS preflight: that of the requested method. If that route does not answer preflights, a route that lists
   * OPTIONS comes first: one route must not grant what another forbids.
   * @param method Access-Control-Request-Method
   */
  findPreflight(method: string, host: string | undefined, path: string): Route | undefined {
    const targetRoute = this.find(method, host, path);
    if (targetRoute?.cors !== undefined) return targetRoute;
    const own = this.find('OPTIONS', host, path);
    return targetRoute === undefined || own?.methods?.has('OPTIONS') === true ? own : targetRoute;
  }
}

/**
 * The target as sent to the upstream: `rewritePrefix` replaces the route's path, and the rest stays unchanged. If only one of the
 * two ends with a slash, a single slash joins prefix and rest, unless the rest is empty.
 */
export function rewriteTarget(target: string, { path, rewritePrefix }: Pick<Route, 'path' | 'rewritePrefix'>): string {
  if (rewritePrefix === undefined || target === ASTERISK) return target;
  const rest = target.slice(path.length);
  // After a path without a final slash, the rest starts with a slash, or consists of a query at most.
  if (!path.endsWith('/')) {
    return rewritePrefix + (rewritePrefix.endsWith('/') && rest.startsWith('/') ? rest.slice(1) : rest);
  }
  const isWhole = rest === '' || rest.startsWith('?');
  return rewritePrefix.endsWith('/') || isWhole ? rewritePrefix + rest : `${rewritePrefix}/${rest}`;
}

/** The path of a target as sent to the upstream: without a query, not decoded. */
export function upstreamPath(target: string, route: Route): string {
  const upstreamTarget = rewriteTarget(target, route);
  const query = upstreamTarget.indexOf('?');
  return query < 0 ? upstreamTarget : upstreamTarget.slice(0, query);
}

/** `/v1` is a prefix of `/v1` and `/v1/x`, not of `/v10`. */
export function hasPrefix(path: string, prefix: string): boolean {
  if (!path.startsWith(prefix)) return false;
  return prefix.endsWith('/') || path.length === prefix.length || path[prefix.length] === '/';
}

/** In lower case, without port (which may be empty, RFC 3986 §3.2.3) and final dot. */
export function normalizeHost(host: string): string {
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}
