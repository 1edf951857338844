import type { Millis } from '../../core/scalars.ts';

/** Longer fields are ignored. */
const MAX_LENGTH = 4096;

// RFC 7240 §2: a token, or a word that is a token or a quoted string (RFC 9110 §5.6.4), with bad white space around `=`.
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const QUOTED = String.raw`"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"`;
const PREFERENCE = new RegExp(String.raw`[ \t]*(${TOKEN})(?:[ \t]*=[ \t]*(${TOKEN}|${QUOTED})?)?[ \t]*`, 'y');
const PARAMETER = new RegExp(String.raw`;[ \t]*(?:${TOKEN}(?:[ \t]*=[ \t]*(?:${TOKEN}|${QUOTED})?)?)?[ \t]*`, 'y');
const EMPTY = /[ \t]*(?=,|$)/y;

/**
 * The preference `wait` (RFC 7240 §4.3): how long a client is willing to wait, in milliseconds. Names are case-insensitive; the
 * first of repeated preferences counts. A malformed field is ignored as a whole.
 * @param field all fields of the name, joined by commas
 * @returns undefined if there is none, or it is not a whole number of seconds above 0
 */
export function parsePreferWait(field: string): Millis | undefined {
  if (field.length > MAX_LENGTH) return undefined;
  let wait: string | undefined;
  for (let at = 0; at <= field.length; at += 1) {
    EMPTY.lastIndex = at;
    if (EMPTY.test(field)) {
      at = EMPTY.lastIndex;
      continue;
    }
    PREFERENCE.lastIndex = at;
    const [, name, value = ''] = PREFERENCE.exec(field) ?? [];
    if (name === undefined) return undefined;
    at = skipParameters(field, PREFERENCE.lastIndex);
    if (at < field.length && field[at] !== ',') return undefined;
    if (name.toLowerCase() === 'wait') wait ??= unquote(value);
  }
  if (wait === undefined || !/^\d+$/.test(wait) || Number(wait) === 0) return undefined;
  return 1000 * Number(wait);
}

function skipParameters(field: string, from: number): number {
  let at = from;
  while (field[at] === ';') {
    PARAMETER.lastIndex = at;
    PARAMETER.test(field);
    at = PARAMETER.lastIndex;
  }
  return at;
}

function unquote(word: string): string {
  return word.startsWith('"') ? word.slice(1, -1).replace(/\\(.)/g, '$1') : word;
}
