import { makePathPattern, segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import { firstMatchingPattern } from '../../http/request/match-path.ts';

/** The part of a request that decides which limits and latencies apply to it. */
export interface MethodAndPath {
  readonly method: string;
  readonly path: string;
  /** The name of the account that it is sent with; absent without one. */
  readonly account?: string | undefined;
  /** What it costs at the limit of all requests, in units; 1 when absent. */
  readonly cost?: number;
}

/** Requests of an upstream: path patterns, of which one must match, and methods; all when absent. */
export interface RequestMatch {
  readonly path?: readonly string[];
  readonly method?: readonly string[];
}

/**
 * Returns a function that matches a request. It returns the values of the first pattern that matches, none without patterns, and
 * undefined if the request does not match.
 */
export function makeRequestMatcher({
  path,
  method,
}: RequestMatch): (request: MethodAndPath) => readonly string[] | undefined {
  const patterns = path?.map(makePathPattern);
  return (request) => {
    if (method !== undefined && !method.includes(request.method)) return undefined;
    return patterns === undefined ? [] : firstMatchingPattern(patterns, segmentsOf(request.path))?.captured;
  };
}
