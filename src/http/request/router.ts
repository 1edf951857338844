import type { Route } from './snapshot-types.ts';
import { ASTERISK } from './request-target.ts';

/** Finds the route of a request: the longest prefix wins, then one with a host or methods over one without. */
export class Router {
  readonly #routes: readonly Route[];
  readonly #asksForHosts: boolean;
  /** Some route says who may ask from a browser. */
  readonly hasCors: boolean;

  constructor(routes: readonly Route[]) {
    this.hasCors = routes.some(({ cors }) => cors !== undefined);
    this.#asksForHosts = routes.some(({ host }) => host !== undefined);
    this.#routes = [...routes].toSorted(
      (a, b) =>
        b.path.length - a.path.length ||
        Number(b.host !== undefined) - Number(a.host !== undefined) ||
        Number(b.methods !== undefined) - Number(a.methods !== undefined),
    );
  }

  /**
   * @param method undefined: whatever methods the route takes
   * @param path `*` leads where `/` does: it is about the server as a whole
   */
  find(method: string | undefined, host: string | undefined, path: string): Route | undefined {
    const name = host === undefined || !this.#asksForHosts ? undefined : bareHost(host);
    for (const route of this.#routes) {
      if (!hasPrefix(path === ASTERISK ? '/' : path, route.path)) continue;
      if (route.host !== undefined && route.host !== name) continue;
      if (method !== undefined && route.methods !== undefined && !route.methods.has(method)) continue;
      return route;
    }
    return undefined;
  }

  /**
   * The route of the method that a preflight asks about. Where that one does not answer preflights, a route that names OPTIONS among its
   * methods comes first: another route's permission must not stand for this one's.
   * @param method that is asked about
   */
  findPreflight(method: string, host: string | undefined, path: string): Route | undefined {
    const meant = this.find(method, host, path);
    if (meant?.cors !== undefined) return meant;
    const own = this.find('OPTIONS', host, path);
    return meant === undefined || own?.methods?.has('OPTIONS') === true ? own : meant;
  }
}

/**
 * The target as the upstream receives it: `rewritePrefix` in place of the route's path, everything behind it to the byte.
 * Where only one of the two ends with a slash, one slash joins prefix and rest, as long as there is a rest of the path.
 */
export function rewriteTarget(target: string, { path, rewritePrefix }: Pick<Route, 'path' | 'rewritePrefix'>): string {
  if (rewritePrefix === undefined || target === ASTERISK) return target;
  const rest = target.slice(path.length);
  // Behind a path without a final slash, the rest begins with one of its own, or is empty but for a query.
  if (!path.endsWith('/')) {
    return rewritePrefix + (rewritePrefix.endsWith('/') && rest.startsWith('/') ? rest.slice(1) : rest);
  }
  const isWhole = rest === '' || rest.startsWith('?');
  return rewritePrefix.endsWith('/') || isWhole ? rewritePrefix + rest : `${rewritePrefix}/${rest}`;
}

/** The path of a target as the upstream sees it: without a query, nothing decoded. */
export function upstreamPath(target: string, route: Route): string {
  const sent = rewriteTarget(target, route);
  const query = sent.indexOf('?');
  return query < 0 ? sent : sent.slice(0, query);
}

/** `/v1` is a prefix of `/v1` and `/v1/x`, not of `/v10`. */
function hasPrefix(path: string, prefix: string): boolean {
  if (!path.startsWith(prefix)) return false;
  return prefix.endsWith('/') || path.length === prefix.length || path[prefix.length] === '/';
}

/** Without its port, which may be empty (RFC 3986 §3.2.3), and the dot of the root: the same host. */
export function bareHost(host: string): string {
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}
