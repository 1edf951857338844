/** Reads one field of a JSON body. Bodies are never rewritten; an ambiguous body yields nothing. */

/** RFC 8259 §8.1: UTF-8. A byte order mark is kept, and then rejected as any other text that is not JSON. */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text at a path of names in a JSON document: `['a', 'b']` of `{"a": {"b": "text"}}`.
 *
 * Returns undefined unless every JSON parser must find the same text there. It does so for a document that is not strict JSON,
 * is not UTF-8 or has a byte order mark; for a duplicate name on the path (also if it differs in a way that some parsers
 * ignore, see `foldName`); for a path through anything but objects; and for a value other than a non-empty string of well-formed
 * Unicode without NUL, where a parser in C may end it.
 * Takes time and memory in proportion to the document: the caller bounds its length.
 */
export function readJsonField(bytes: Uint8Array, path: readonly string[]): string | undefined {
  const value = readJsonScalar(bytes, path);
  if (typeof value !== 'string') return undefined;
  return value === '' || value.includes(NUL) || !value.isWellFormed() ? undefined : value;
}

/** As `readJsonField`, for a value that may also be a number, `true` or `false`, or any text. */
export function readJsonScalar(bytes: Uint8Array, path: readonly string[]): string | number | boolean | undefined {
  const text = decode(bytes);
  if (text === undefined || !isJson(text)) return undefined;
  let at: number | undefined = skipSpace(text, 0);
  for (const name of path) {
    if (at === undefined || text[at] !== '{') return undefined;
    at = findMember(text, at, name);
  }
  if (at === undefined) return undefined;
  if (text[at] === '"') return readString(text, at, skipString(text, at));
  if (text[at] === '{' || text[at] === '[') return undefined;
  const value: unknown = JSON.parse(text.slice(at, skipValue(text, at)));
  return typeof value === 'number' || typeof value === 'boolean' ? value : undefined;
}

const NUL = '\0';

/**
 * Equal for all names that some parser takes for the same. Many ignore case; Go's does so by Unicode's rules, by which `ſ` is an
 * `s` and the Kelvin sign a `k`, and Java's lower case of `İ` is `i`. A parser in C may end a name at NUL.
 */
function foldName(name: string): string {
  const end = name.indexOf(NUL);
  const own = end < 0 ? name : name.slice(0, end);
  // In three steps, because some letters share only their upper case, and others only their lower case.
  return own.replaceAll('İ', 'i').toLowerCase().toUpperCase().toLowerCase();
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

// From here on the text is known to be JSON: every text ends, every bracket is closed.

/**
 * The start of the value of this name, in the object that starts at `at`.
 * @returns undefined if there is no such name, or more than one that a parser may take for it
 */
function findMember(text: string, at: number, name: string): number | undefined {
  const folded = foldName(name);
  let found: number | undefined;
  let isExact = false;
  let next = skipSpace(text, at + 1);
  while (text[next] === '"') {
    const end = skipString(text, next);
    const own = readString(text, next, end);
    const value = skipSpace(text, skipSpace(text, end) + 1);
    if (own === name || foldName(own) === folded) {
      if (found !== undefined) return undefined;
      found = value;
      isExact = own === name;
    }
    next = skipSpace(text, skipValue(text, value));
    if (text[next] === ',') next = skipSpace(text, next + 1);
  }
  return isExact ? found : undefined;
}

/** The text between the quotes at `from` and before `end`, without its escapes. */
function readString(text: string, from: number, end: number): string {
  const raw = text.slice(from + 1, end - 1);
  return raw.includes('\\') ? String(JSON.parse(text.slice(from, end))) : raw;
}

/** The position after the value that starts at `at`. */
function skipValue(text: string, at: number): number {
  if (text[at] === '"') return skipString(text, at);
  let depth = 0;
  let next = at;
  for (;;) {
    switch (text[next]) {
      case '"':
        next = skipString(text, next);
        continue;
      case '{':
      case '[':
        depth += 1;
        break;
      case '}':
      case ']':
        if (depth === 0) return next; // the bracket that encloses a number or a word
        depth -= 1;
        if (depth === 0) return next + 1;
        break;
      case ',':
        if (depth === 0) return next;
        break;
      case undefined:
        return next;
    }
    next += 1;
  }
}

/** The position after the closing quote of the string whose opening quote is at `at`. */
function skipString(text: string, at: number): number {
  for (let next = at + 1; next < text.length; next += 1) {
    if (text[next] === '\\') next += 1;
    else if (text[next] === '"') return next + 1;
  }
  return text.length;
}

function skipSpace(text: string, at: number): number {
  let next = at;
  while (text[next] === ' ' || text[next] === '\n' || text[next] === '\r' || text[next] === '\t') next += 1;
  return next;
}
