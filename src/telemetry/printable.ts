/** Control and format characters, and separators of lines: a terminal would execute escape sequences, and reorder text. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Replaces what is not printable: clients choose paths, headers and names. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, '�');
}

/** JSON in one line without unprintable characters: each is escaped, so that nothing is lost. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(UNPRINTABLE, (character) => character.split('').map(escapeUnit).join(''));
}

/** @param unit a UTF-16 code unit */
function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
