/**
 * The elements of a list-valued header field, in order. Ignores empty elements, and the spaces and tabs around each
 * (RFC 9110 §5.6.1.2). A comma in a quoted string separates too, so that an unbalanced quote of one hop cannot hide what the
 * next hop appended.
 * @param field repeated fields joined by commas; undefined if absent
 */
export function parseListField(field: string | undefined): string[] {
  if (field === undefined) return [];
  if (!field.includes(',')) {
    const only = trimSpace(field);
    return only === '' ? [] : [only];
  }
  return field
    .split(',')
    .map(trimSpace)
    .filter((element) => element !== '');
}

/**
 * Appends `more` to a list. Drops empty elements at either end of `more`, which a sender must not write (RFC 9110 §5.6.1.1).
 * Keeps everything in between byte for byte.
 */
export function appendToListField(list: string, more: string): string {
  const added = trimEnds(more);
  if (list === '' || added === '') return list + added;
  return `${list}, ${added}`;
}

/** Trims only spaces and tabs: `trim` also removes characters that are bytes of a value. */
function trimSpace(text: string): string {
  return hasOuter(text, isSpace) ? text.replace(/^[\t ]+|[\t ]+$/g, '') : text;
}

function trimEnds(text: string): string {
  return hasOuter(text, isSpaceOrComma) ? text.replace(/^[\t ,]+|[\t ,]+$/g, '') : text;
}

function hasOuter(text: string, isPadding: (code: number) => boolean): boolean {
  return isPadding(text.charCodeAt(0)) || isPadding(text.charCodeAt(text.length - 1));
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function isSpaceOrComma(code: number): boolean {
  return isSpace(code) || code === 0x2c;
}
