import type { Millis } from '../../core/scalars.ts';

/** Longer fields are ignored. */
const MAX_LENGTH = 4096;

// RFC 7240 §2: a token, or a word that is a token or a quoted string (RFC 9110 §5.6.4), with bad white space around `=`.
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const QUOTED = String.raw`"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"`;
const PREFERENCE = new RegExp(String.raw`[ \t]*(${TOKEN})(?:[ \t]*=[ \t]*(${TOKEN}|${QUOTED})?)?[ \t]*`, 'y');
const PARAMETER = new RegExp(String.raw`;[ \t]*(?:${TOKEN}(?:[ \t]*=[ \t]*(?:${TOKEN}|${QUOTED})?)?)?[ \t]*`, 'y');
const EMPTY = /[ \t]*(?=,|$)/y;

export interface Preference {
  /** In lower case. */
  readonly name: string;
  /** Empty if there is none. */
  readonly value: string;
  /** As written, with its parameters. */
  readonly text: string;
}

/**
 * The preferences of a client (RFC 7240). Names are case-insensitive; the first of repeated preferences counts. A malformed field is
 * ignored as a whole.
 * @param field all fields of the name, joined by commas
 */
export function parsePreferences(field: string): readonly Preference[] {
  if (field.length > MAX_LENGTH) return [];
  const preferences: Preference[] = [];
  for (let at = 0; at <= field.length; at += 1) {
    EMPTY.lastIndex = at;
    if (EMPTY.test(field)) {
      at = EMPTY.lastIndex;
      continue;
    }
    const from = at;
    PREFERENCE.lastIndex = at;
    const [, name, value = ''] = PREFERENCE.exec(field) ?? [];
    if (name === undefined) return [];
    at = skipParameters(field, PREFERENCE.lastIndex);
    if (at < field.length && field[at] !== ',') return [];
    preferences.push({ name: name.toLowerCase(), value: unquote(value), text: field.slice(from, at).trim() });
  }
  return preferences;
}

/**
 * The preference `wait` (RFC 7240 §4.3): how long a client is willing to wait, in milliseconds.
 * @param field all fields of the name, joined by commas
 * @returns undefined if there is none, or it is not a whole number of seconds above 0
 */
export function parsePreferWait(field: string): Millis | undefined {
  const wait = parsePreferences(field).find(({ name }) => name === 'wait')?.value;
  if (wait === undefined || !/^\d+$/.test(wait) || Number(wait) === 0) return undefined;
  return 1000 * Number(wait);
}

/** Whether the client prefers a 202 at once to a response later (RFC 7240 §4.1). */
export function prefersAsync(field: string): boolean {
  return parsePreferences(field).some(({ name }) => name === 'respond-async');
}

/** The fields `Prefer` without what `respond-async` has settled. @param raw names and values in turn */
export function withoutAsyncPreference(raw: readonly string[]): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = raw.slice(i, i + 2);
    if (name.toLowerCase() !== 'prefer') {
      kept.push(name, value);
      continue;
    }
    const rest = parsePreferences(value).filter((each) => each.name !== 'respond-async' && each.name !== 'wait');
    if (rest.length > 0) kept.push(name, rest.map(({ text }) => text).join(', '));
  }
  return kept;
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
