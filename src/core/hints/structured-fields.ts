/**
 * As much of RFC 9651 as the RateLimit fields of all their drafts need: a List of Items, or a Dictionary, with
 * parameters. Numbers, strings and tokens have a value; other types are skipped, since unknown parameters "can be regarded
 * as comments".
 */
type BareItem = number | string | undefined;

export interface FieldMember {
  /** The key of a Dictionary's member; undefined in a List. */
  readonly key: string | undefined;
  readonly value: BareItem;
  readonly parameters: ReadonlyMap<string, BareItem>;
}

/** Longer than any genuine field of this kind, so a longer one is not parsed. */
const MAX_LENGTH = 4096;

const OWS = /[ \t]*/y;
const SP = / */y;
const KEY = /[a-z*][a-z0-9_.*-]*/y;
const KEY_AND_EQUALS = /([a-z*][a-z0-9_.*-]*)=/y;
// Number, String, Token; then, unvalued, Byte Sequence, Boolean, Date and Display String (RFC 9651 §3.3). A number may be longer
// than the RFC allows: some upstreams send 2⁶⁴ − 1 for "no limit", and the rest of the field is still valid.
const BARE_ITEM =
  /(-?\d+(?:\.\d+)?)|"((?:[ !#-[\]-~]|\\["\\])*)"|([A-Za-z*][\w!#$%&'*+.^`|~:/-]*)|:[A-Za-z0-9+/=]*:|\?[01]|@-?\d{1,15}|%"[ !#-~]*"/y;

/**
 * The members of a List or Dictionary, in order; repeated fields are joined by commas beforehand.
 * @returns undefined when any part is malformed: such a field is ignored as a whole (RFC 9651 §4.2), inner lists included.
 */
export function parseMembers(field: string): readonly FieldMember[] | undefined {
  if (field.length > MAX_LENGTH) return undefined;
  const members: FieldMember[] = [];
  let at = skip(OWS, field, 0);
  while (at < field.length) {
    const key = match(KEY_AND_EQUALS, field, at);
    if (key !== null) at = KEY_AND_EQUALS.lastIndex;
    const item = match(BARE_ITEM, field, at);
    if (item === null) return undefined;
    at = BARE_ITEM.lastIndex;

    const parameters = new Map<string, BareItem>();
    while (field[at] === ';') {
      at = skip(SP, field, at + 1);
      const name = match(KEY, field, at)?.[0];
      if (name === undefined) return undefined;
      at = KEY.lastIndex;
      let value: BareItem;
      if (field[at] === '=') {
        const bareItem = match(BARE_ITEM, field, at + 1);
        if (bareItem === null) return undefined;
        at = BARE_ITEM.lastIndex;
        value = valueOf(bareItem);
      }
      parameters.set(name, value);
    }
    members.push({ key: key?.[1], value: valueOf(item), parameters });

    at = skip(OWS, field, at);
    if (at === field.length) return members;
    if (field[at] !== ',') return undefined;
    at = skip(OWS, field, at + 1);
    if (at === field.length) return undefined;
  }
  return members;
}

function valueOf([, number, string, token]: RegExpExecArray): BareItem {
  // -0 is a legal Integer, and dividing by it would turn a pace to -Infinity.
  if (number !== undefined) return Number(number) + 0;
  return string === undefined ? token : string.replace(/\\(.)/g, '$1');
}

function match(sticky: RegExp, text: string, at: number): RegExpExecArray | null {
  sticky.lastIndex = at;
  return sticky.exec(text);
}

function skip(sticky: RegExp, text: string, at: number): number {
  sticky.lastIndex = at;
  return sticky.test(text) ? sticky.lastIndex : at;
}
