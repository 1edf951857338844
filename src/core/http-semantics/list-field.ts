/**
 * The elements of a list-valued header field, in order. Empty elements are ignored, as are the spaces and tabs around each
 * (RFC 9110 §5.6.1.2); a field of nothing but commas has none. A comma in a quoted string separates too: an unbalanced quote of
 * one hop must not hide what the next one has appended.
 * @param field repeated fields joined by commas; undefined where there is none
 */
export function listElements(field: string | undefined): string[] {
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
 * A list with more behind it. Empty elements at either end of what came are left out: a sender writes none (RFC 9110 §5.6.1.1).
 * Everything between stays to the byte.
 */
export function appendToList(list: string, more: string): string {
  const came = trimEnds(more);
  if (list === '' || came === '') return list + came;
  return `${list}, ${came}`;
}

/** Spaces and tabs alone: `trim` takes characters away that are bytes of a value. */
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
