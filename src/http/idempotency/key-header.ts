/** The lines of the header with the idempotency key. Servers with CGI semantics take `_` in a name for `-`. */
import { isUtf8 } from 'node:buffer';
import { trimSpace } from '../../core/http-semantics/list-field.ts';
import { withoutHeader } from '../headers/raw-headers.ts';

interface KeyHeaderLine {
  readonly value: string;
  /** The name has no underscores in place of hyphens. */
  readonly isExact: boolean;
}

export const NO_LINES: readonly KeyHeaderLine[] = [];

/** Returns `NO_LINES` if there is none. @param lower the name of the header, in lower case */
export function keyLinesOf(rawHeaders: readonly string[], lower: string): readonly KeyHeaderLine[] {
  let lines: KeyHeaderLine[] | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const match = matchName(rawHeaders[i] ?? '', lower);
    if (match === undefined) continue;
    lines ??= [];
    lines.push({ value: trimSpace(rawHeaders[i + 1] ?? ''), isExact: match === 'exact' });
  }
  return lines ?? NO_LINES;
}

/** Replaces the keys in all lines of the header. Empty ones stay. @param toKey gets the text of a key */
export function rewriteKeyLines(headers: readonly string[], lower: string, toKey: (key: string) => string): string[] {
  return headers.map((text, i) => {
    if (i % 2 === 0 || matchName(headers[i - 1] ?? '', lower) === undefined) return text;
    const value = trimSpace(text);
    return value === '' ? text : quoteAs(value, toKey(textOfKey(value)));
  });
}

/** The key in quotes if the client has written its own as a String of a structured field (RFC 9651 §3.3.3). */
function quoteAs(written: string, key: string): string {
  return QUOTED.test(written) ? `"${key}"` : key;
}

/** A key without its quotes: see `quoteAs`. */
export function unquote(written: string): string {
  return QUOTED.test(written) ? written.slice(1, -1) : written;
}

const QUOTED = /^".*"$/;

/**
 * The text of a key, which names the write: the same as in a JSON body, which is UTF-8.
 * @param value one character a byte; one that is not UTF-8 counts as ISO 8859-1
 */
export function textOfKey(value: string): string {
  if (!BEYOND_ASCII.test(value)) return value;
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString() : value;
}

const BEYOND_ASCII = /[\x80-\xFF]/;

/** Adds a generated key to the headers, in place of an empty one. */
export function withMintedKey(
  headers: string[],
  { name, lower }: { name: string; lower: string },
  key: string,
): string[] {
  return [...withoutHeader(headers, lower), name, key];
}

function matchName(name: string, lower: string): 'exact' | 'folded' | undefined {
  if (name.length !== lower.length) return undefined;
  const own = name.toLowerCase();
  if (own === lower) return 'exact';
  return own.replaceAll('_', '-') === lower.replaceAll('_', '-') ? 'folded' : undefined;
}
