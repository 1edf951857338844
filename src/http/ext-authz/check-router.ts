import { mergeSlashes } from '../request/match-path.ts';
import { normalizeEscapes } from '../../core/http-semantics/path-pattern.ts';
import type { Route } from '../request/snapshot-types.ts';
import { Router } from '../request/router.ts';

/** What is in a path that not everybody reads alike. */
const MANY_READINGS = /[%;A-Z]|\/\//;

/**
 * Finds the route of a request that somebody else sends. A proxy in the path forwards what it has read; here the app gets
 * what the client wrote, and may read another path out of it than the routes do. So one that would have another route then
 * has none that can be told.
 */
export class CheckRouter {
  readonly #asWritten: Router;
  readonly #asSomeRead: Router;

  constructor(routes: readonly Route[]) {
    const readBy = (read: (path: string) => string): Router =>
      new Router(routes.map((route) => ({ ...route, path: read(route.path) })));
    this.#asWritten = readBy(normalizeTarget);
    this.#asSomeRead = readBy(readLoosely);
  }

  /** @param path as `normalizeTarget` leaves it. Returns undefined where no route leads there, however it is read */
  find(method: string, host: string | undefined, path: string): Route | 'ambiguous' | undefined {
    const route = this.#asWritten.find(method, host, path);
    if (!MANY_READINGS.test(path)) return route;
    const other = this.#asSomeRead.find(method, host, readLoosely(path));
    // Routes that differ in nothing but that are told apart by their app as well.
    const isSame = route === undefined ? other === undefined : readLoosely(route.path) === other?.path;
    return isSame ? route : 'ambiguous';
  }
}

/** With its escapes as patterns have them: for everybody the same path. */
export function normalizeTarget(target: string): string {
  const query = target.indexOf('?');
  const path = query < 0 ? target : target.slice(0, query);
  return path.includes('%') ? normalizeEscapes(path) + target.slice(path.length) : target;
}

/** As the most lenient app would: decoded, without what follows a semicolon, of one slash each, in one case. */
function readLoosely(path: string): string {
  const decoded = path.replace(/%[0-9A-Fa-f]{2}/g, (coded) => String.fromCharCode(Number.parseInt(coded.slice(1), 16)));
  return mergeSlashes(decoded.replace(/[;?#][^/]*/g, '')).toLowerCase();
}
