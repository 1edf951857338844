import { requestProblem } from '../response/problem-details.ts';
import type { Problem } from '../response/problem.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import { mergeSlashes } from '../request/match-path.ts';
import type { Route } from '../request/route.ts';
import { type Router, upstreamPath } from '../request/router.ts';

/**
 * Refuses a request that would reach a guarded path of the upstream by another route, which requires less: a signature, a credential
 * or a permission. Routes match byte by byte, while many servers decode `%73`, merge slashes, drop `;parameters` or ignore case.
 */
export function findDisguisedPath(
  request: Pick<HttpServerRequest, 'verb' | 'target'>,
  route: Route,
  { guarded }: Pick<Router, 'guarded'>,
): Problem | undefined {
  if (guarded.length === 0) return undefined;
  const ownPrefix = upstreamPrefix(route);
  let path: string | undefined;
  for (const other of guarded) {
    if (other.target.name !== route.target.name || other.methods?.has(request.verb) === false) continue;
    const prefix = upstreamPrefix(other);
    if (prefix.length <= ownPrefix.length) continue; // the more special route is meant
    const problem = problemOfWayAround(route, other);
    if (problem === undefined) continue;
    path ??= plainPath(upstreamPath(request.target, route));
    if (isBelow(path, plainPath(prefix))) return problem;
  }
  return undefined;
}

/** Undefined if a request of the one route may as well be one of the other. */
function problemOfWayAround(route: Route, other: Route): Problem | undefined {
  if (other.verify !== undefined && route.verify === undefined) return DISGUISED;
  const requiresLess = (route.isPublic && !other.isPublic) || other.isRestricted;
  return requiresLess ? DISGUISED_FROM_CLIENTS : undefined;
}

const DISGUISED = requestProblem(
  400,
  'Bad request',
  'The path is another spelling of one whose requests must be signed. Write it without escapes and doubled slashes.',
  'bad_request',
);

const DISGUISED_FROM_CLIENTS = requestProblem(
  400,
  'Bad request',
  'The path is another spelling of a path whose route requires a credential or a permission. Write it without escapes and doubled slashes.',
  'bad_request',
);

function upstreamPrefix({ rewritePrefix, path }: Route): string {
  return rewritePrefix ?? path;
}

/** The path as the most lenient server reads it: a decoded `?` may begin a query. Dot segments and backslashes are refused earlier. */
function plainPath(path: string): string {
  const decoded = path.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  return mergeSlashes(decoded.replaceAll(/[;?#][^/]*/g, '')).toLowerCase();
}

/** `/hooks` and `/hooks/a` are below `/hooks` and `/hooks/`; `/hooks2` is not. */
function isBelow(path: string, prefix: string): boolean {
  const stem = prefix.endsWith('/') ? prefix.slice(0, -1) : prefix;
  return path.startsWith(stem) && (path.length === stem.length || path[stem.length] === '/');
}
