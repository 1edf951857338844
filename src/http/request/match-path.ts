import type { Captured, PathPattern } from '../../core/http-semantics/path-pattern.ts';

/** As many servers read a path with doubled slashes. */
export function mergeSlashes(path: string): string {
  return path.replace(/\/{2,}/g, '/');
}

/** The first pattern that matches, and what it has found; undefined where none does. */
export function firstMatch(patterns: readonly PathPattern[], segments: readonly string[]): Match | undefined {
  for (const pattern of patterns) {
    const captured = pattern.match(segments);
    if (captured !== undefined) return { pattern, captured };
  }
  return undefined;
}

export interface Match {
  readonly pattern: PathPattern;
  readonly captured: Captured;
}
