/** Bodies are only looked into, never rewritten; of one in doubt nothing is said. */

/** RFC 8259 §8.1: UTF-8. A byte order mark is left where it is, and then refused like any other text that is no JSON. */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text at a path of names in a JSON document: `['a', 'b']` of `{"a": {"b": "text"}}`.
 *
 * Undefined unless every reader must find the same text there: not JSON to the letter, not UTF-8, a byte order mark, a name
 * on the way twice (also where they differ in case, which some readers pass over), anything but objects on the way, anything
 * but a text that is not empty and is whole Unicode. It takes time and memory in proportion to the document: its length is
 * for the caller to bound.
 */
export function readJsonField(bytes: Uint8Array, path: readonly string[]): string | undefined {
  const text = decode(bytes);
  if (text === undefined || !isJson(text)) return undefined;
  let at: number | undefined = skipSpace(text, 0);
  for (const name of path) {
    if (at === undefined || text[at] !== '{') return undefined;
    at = findMember(text, at, name);
  }
  if (at === undefined || text[at] !== '"') return undefined;
  const value = readText(text, at, skipText(text, at));
  return value === '' || !value.isWellFormed() ? undefined : value;
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
 * Where the value of this name begins, in the object that begins at `at`.
 * @returns undefined when there is no such name, or more than one that somebody may take for it
 */
function findMember(text: string, at: number, name: string): number | undefined {
  const folded = name.toLowerCase();
  let found: number | undefined;
  let isExact = false;
  let next = skipSpace(text, at + 1);
  while (text[next] === '"') {
    const end = skipText(text, next);
    const own = readText(text, next, end);
    const value = skipSpace(text, skipSpace(text, end) + 1);
    if (own === name || own.toLowerCase() === folded) {
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
function readText(text: string, from: number, end: number): string {
  const raw = text.slice(from + 1, end - 1);
  return raw.includes('\\') ? String(JSON.parse(text.slice(from, end))) : raw;
}

/** Behind the value that begins at `at`. */
function skipValue(text: string, at: number): number {
  if (text[at] === '"') return skipText(text, at);
  let depth = 0;
  let next = at;
  for (;;) {
    switch (text[next]) {
      case '"':
        next = skipText(text, next);
        continue;
      case '{':
      case '[':
        depth += 1;
        break;
      case '}':
      case ']':
        if (depth === 0) return next; // of what is around a number or a word
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

/** Behind the closing quote of the text whose opening one is at `at`. */
function skipText(text: string, at: number): number {
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
