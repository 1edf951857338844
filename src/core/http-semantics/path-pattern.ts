/** What a path pattern found: the values of its named segments, in their order. */
export type Captured = readonly string[];

/** `{name}`, and `{name=a|b}`: one of these words. */
const NAMED = /^\{([a-z][a-z0-9_-]*)(?:=([^{}/*]+))?\}$/;

export interface PathPattern {
  /** As it is written. */
  readonly text: string;
  /** Of its named segments, in their order, and at which place of a path each stands, from 1. */
  readonly names: readonly string[];
  readonly places: readonly number[];
  /** @param segments of a path, as `segmentsOf` has them. Returns undefined where it does not match */
  match(segments: readonly string[]): Captured | undefined;
  /** The pattern with these values in place of its named segments. */
  fill(captured: Captured): string;
}

const NOTHING: Captured = [];

/**
 * `/v1/charges` itself; `*` is one segment, `{name}` one that is remembered, `{name=a|b}` one of these words, `**` at the end all that lies below:
 * `/v1/files/**` is `/v1/files/x` and `/v1/files/x/y`, not `/v1/files`. A slash at the end of a path does not matter.
 * @param text as `mistakeOf` finds nothing wrong with
 */
export function makePathPattern(text: string): PathPattern {
  const parts = [...segmentsOf(text)];
  const isOpen = parts.at(-1) === '**';
  if (isOpen) parts.pop();
  const names: string[] = [];
  const places: number[] = [];
  for (const [index, part] of parts.entries()) {
    const name = NAMED.exec(part)?.[1];
    if (name === undefined) continue;
    names.push(name);
    places.push(index + 1);
  }
  const isWild = parts.map((part) => part === '*' || NAMED.test(part));
  const words = parts.map((part) => NAMED.exec(part)?.[2]?.split('|'));
  return {
    text,
    names,
    places,
    match(segments) {
      if (isOpen ? segments.length <= parts.length : segments.length !== parts.length) return undefined;
      for (const [index, part] of parts.entries()) {
        const segment = segments[index];
        if (isWild[index] === true ? segment === '' : segment !== part) return undefined;
        if (segment !== undefined && words[index]?.includes(segment) === false) return undefined;
      }
      return places.length === 0 ? NOTHING : places.map((place) => segments[place - 1] ?? '');
    },
    fill(captured) {
      const filled = parts.map((part, index) => captured[places.indexOf(index + 1)] ?? part);
      return `/${[...filled, ...(isOpen ? ['**'] : [])].join('/')}`;
    },
  };
}

/**
 * The segments of a path or a pattern, normalised so that equivalent paths are equal: `/v1/%63harges` is no other endpoint than
 * `/v1/charges`, and `a%2fb` no other segment than `a%2Fb`.
 */
export function segmentsOf(path: string): readonly string[] {
  return splitPath(path.includes('%') ? normalizeEscapes(path) : path);
}

/** What need not be escaped is not (RFC 3986 §6.2.2.2): letters, digits and `._~-`. Other escapes are in upper case (§6.2.2.1). */
export function normalizeEscapes(path: string): string {
  return path.replace(/%[0-9A-Fa-f]{2}/g, normalizeEscape);
}

function normalizeEscape(escape: string): string {
  const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16));
  return /[A-Za-z0-9._~-]/.test(character) ? character : escape.toUpperCase();
}

/** Without the slash before the first, and without one at the end. */
function splitPath(path: string): string[] {
  const end = path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length;
  return path.slice(1, end).split('/');
}

const NO_SEGMENT = '* and {name} stand for a whole segment, as does {name=a|b}; a name is of a-z, 0-9, _ and -';

/** What is wrong with it, in words; undefined where nothing is. */
export function mistakeOf(text: string): string | undefined {
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
    const name = NAMED.exec(part)?.[1];
    if (name === undefined) {
      if (/[*{}]/.test(part)) return NO_SEGMENT;
      continue;
    }
    if (names.has(name)) return `two segments are called {${name}}`;
    names.add(name);
  }
  return undefined;
}
