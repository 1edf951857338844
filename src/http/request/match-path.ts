import type { PathCaptures, PathPattern } from '../../core/http-semantics/path-pattern.ts';

/** The path with doubled slashes merged, as many servers read it. */
export function mergeSlashes(path: string): string {
  return path.replace(/\/{2,}/g, '/');
}

/** The first pattern that matches, with its captures; undefined if none does. */
export function firstMatchingPattern(
  patterns: readonly PathPattern[],
  segments: readonly string[],
): PathMatch | undefined {
  for (const pattern of patterns) {
    const captured = pattern.match(segments);
    if (captured !== undefined) return { pattern, captured };
  }
  return undefined;
}

export interface PathMatch {
  readonly pattern: PathPattern;
  readonly captured: PathCaptures;
}
