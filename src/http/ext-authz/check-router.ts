import { mergeSlashes } from '../request/match-path.ts';
import { normalizeEscapes } from '../../core/http-semantics/path-pattern.ts';
import type { Route } from '../request/route.ts';
import { Router } from '../request/router.ts';

/** Characters of a path that servers interpret differently. */
const AMBIGUOUS_PATH = /[%;A-Z]|\/\//;

/**
 * Finds the route of a checked request, which the ingress forwards itself. The application behind it may read the path
 * differently than the routes do. A path that would then have another route is ambiguous.
 */
export class CheckRouter {
  readonly #strict: Router;
  readonly #lenient: Router;
  readonly #routes: readonly Route[];

  constructor(routes: readonly Route[]) {
    this.#routes = routes;
    const routerWith = (normalize: (path: string) => string): Router =>
      new Router(routes.map((route) => ({ ...route, path: normalize(route.path) })));
    this.#strict = routerWith(normalizeTarget);
    this.#lenient = routerWith(normalizeLeniently);
  }

  /** The route of this name. Undefined if none of the routes that answer checks has it. */
  named(name: string): Route | undefined {
    return this.#routes.find((route) => route.name === name);
  }

  /** The first route of this upstream. Undefined if no route that answers checks has it. */
  firstOf(upstream: string): Route | undefined {
    return this.#routes.find((route) => route.target.name === upstream);
  }

  /** @param path see `normalizeTarget`. Returns undefined if no route matches, however the path is read */
  find(method: string, host: string | undefined, path: string): Route | 'ambiguous' | undefined {
    const route = this.#strict.find(method, host, path);
    if (!AMBIGUOUS_PATH.test(path)) return route;
    const lenientRoute = this.#lenient.find(method, host, normalizeLeniently(path));
    // If two routes differ only in spelling, the application also treats them as different paths.
    const isSame =
      route === undefined ? lenientRoute === undefined : normalizeLeniently(route.path) === lenientRoute?.path;
    return isSame ? route : 'ambiguous';
  }
}

/** The target with the escapes of its path normalised as in patterns: an equivalent path. */
export function normalizeTarget(target: string): string {
  const query = target.indexOf('?');
  const path = query < 0 ? target : target.slice(0, query);
  return path.includes('%') ? normalizeEscapes(path) + target.slice(path.length) : target;
}

/** The path as the most lenient application reads it: decoded, without path parameters, slashes merged, in lower case. */
function normalizeLeniently(path: string): string {
  const decoded = path.replace(/%[0-9A-Fa-f]{2}/g, (coded) => String.fromCharCode(Number.parseInt(coded.slice(1), 16)));
  return mergeSlashes(decoded.replace(/[;?#][^/]*/g, '')).toLowerCase();
}
