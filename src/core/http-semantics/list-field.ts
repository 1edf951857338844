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
  const added = trimWhile(more, isSpaceOrComma);
  if (list === '' || added === '') return list + added;
  return `${list}, ${added}`;
}

/**
 * Trims only spaces and tabs, the white space of HTTP (RFC 9110 §5.6.3). To be used for all values of headers: `trim` and `\s` also
 * take the byte 0xA0 for white space, which is part of a value.
 */
export function trimSpace(text: string): string {
  return trimWhile(text, isSpace);
}

/** Not by a regular expression: `[ ]+$` starts anew at each space, so a long run inside a value takes quadratic time. */
function trimWhile(text: string, isPadding: (code: number) => boolean): string {
  let start = 0;
  let end = text.length;
  while (start < end && isPadding(text.charCodeAt(start))) start += 1;
  while (start < end && isPadding(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function isSpaceOrComma(code: number): boolean {
  return isSpace(code) || code === 0x2c;
}
