import type { Captured, PathPattern } from '../policy/path-pattern.ts';
import { splitPath } from '../policy/path-pattern.ts';

/**
 * The segments of a path as patterns meet them: what need not be written with % is taken as the character it stands for
 * (RFC 3986 §6.2.2.2), so that `/v1/%63harges` is no other endpoint than `/v1/charges`.
 */
export function segmentsOf(path: string): readonly string[] {
  return splitPath(path.includes('%') ? decodeUnreserved(path) : path);
}

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

/** Without % where it says nothing: letters, digits and `._~-`. */
export function decodeUnreserved(path: string): string {
  return path.replace(/%[0-9A-Fa-f]{2}/g, decodeOne);
}

function decodeOne(coded: string): string {
  const character = String.fromCharCode(Number.parseInt(coded.slice(1), 16));
  return /[A-Za-z0-9._~-]/.test(character) ? character : coded;
}
