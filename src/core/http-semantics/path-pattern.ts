/** The values of the named segments of a match, in order. */
export type PathCaptures = readonly string[];

/** `{name}`, or `{name=a|b}` for one of these words. */
const NAMED_SEGMENT = /^\{([a-z][a-z0-9_-]*)(?:=([^{}/*]+))?\}$/;

export interface PathPattern {
  /** As configured. */
  readonly text: string;
  /** Of its named segments, in order; `positions` counts segments of the path from 1. */
  readonly names: readonly string[];
  readonly positions: readonly number[];
  /** @param segments of a path, from `segmentsOf` @returns undefined if they do not match */
  match(segments: readonly string[]): PathCaptures | undefined;
  /** The pattern with its named segments replaced by these values. */
  substitute(captured: PathCaptures): string;
}

const NO_CAPTURES: PathCaptures = [];

/**
 * Compiles a path pattern. `/v1/charges` matches itself; `*` one segment; `{name}` one segment, which is captured; `{name=a|b}`
 * one of these words; `**` at the end everything below: `/v1/files/**` matches `/v1/files/x` and `/v1/files/x/y`, not
 * `/v1/files`. A slash at the end of a path does not matter.
 * @param text valid according to `validatePathPattern`
 */
export function makePathPattern(text: string): PathPattern {
  const parts = [...segmentsOf(text)];
  const hasRest = parts.at(-1) === '**';
  if (hasRest) parts.pop();
  const names: string[] = [];
  const positions: number[] = [];
  for (const [index, part] of parts.entries()) {
    const name = NAMED_SEGMENT.exec(part)?.[1];
    if (name === undefined) continue;
    names.push(name);
    positions.push(index + 1);
  }
  const isWildcard = parts.map((part) => part === '*' || NAMED_SEGMENT.test(part));
  const words = parts.map((part) => NAMED_SEGMENT.exec(part)?.[2]?.split('|'));
  return {
    text,
    names,
    positions,
    match(segments) {
      if (hasRest ? segments.length <= parts.length : segments.length !== parts.length) return undefined;
      for (const [index, part] of parts.entries()) {
        const segment = segments[index];
        if (isWildcard[index] === true ? segment === '' : segment !== part) return undefined;
        if (segment !== undefined && words[index]?.includes(segment) === false) return undefined;
      }
      return positions.length === 0 ? NO_CAPTURES : positions.map((position) => segments[position - 1] ?? '');
    },
    substitute(captured) {
      const filled = parts.map((part, index) => captured[positions.indexOf(index + 1)] ?? part);
      return `/${[...filled, ...(hasRest ? ['**'] : [])].join('/')}`;
    },
  };
}

/**
 * The segments of a path or a pattern, normalised so that equivalent paths are equal: `/v1/%63harges` equals `/v1/charges`,
 * and `a%2fb` equals `a%2Fb`.
 */
export function segmentsOf(path: string): readonly string[] {
  return splitPath(path.includes('%') ? normalizeEscapes(path) : path);
}

/**
 * Decodes the escapes of unreserved characters (RFC 3986 §6.2.2.2): letters, digits and `._~-`. Writes other escapes in upper
 * case (§6.2.2.1).
 */
export function normalizeEscapes(path: string): string {
  return path.replace(/%[0-9A-Fa-f]{2}/g, normalizeEscape);
}

function normalizeEscape(escape: string): string {
  const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16));
  return /[A-Za-z0-9._~-]/.test(character) ? character : escape.toUpperCase();
}

/** Ignores the slash at the start and one at the end. */
function splitPath(path: string): string[] {
  const end = path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length;
  return path.slice(1, end).split('/');
}

const NOT_A_SEGMENT = '* and {name} stand for a whole segment, as does {name=a|b}; a name is of a-z, 0-9, _ and -';

/** @returns the error of an invalid pattern, for people; undefined if it is valid */
export function validatePathPattern(text: string): string | undefined {
  if (!text.startsWith('/')) return 'a path pattern begins with a slash';
  if (/[?#\s]/.test(text)) return 'a path pattern has no query, fragment or space';
  const parts = splitPath(text);
  const names = new Set<string>();
  for (const [index, part] of parts.entries()) {
    if (part === '' && parts.length > 1) return 'a segment of it is empty';
    if (part === '*') continue;
    if (part === '**') {
      if (index < parts.length - 1) return '** stands for the rest: only at the end';
      continue;
    }
    const name = NAMED_SEGMENT.exec(part)?.[1];
    if (name === undefined) {
      if (/[*{}]/.test(part)) return NOT_A_SEGMENT;
      continue;
    }
    if (names.has(name)) return `two segments are called {${name}}`;
    names.add(name);
  }
  return undefined;
}
