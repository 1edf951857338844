import { trimSpace } from '../http-semantics/list-field.ts';

/** A comma before a day and a month belongs to an HTTP-date: `Sat, 21 Nov 2026`, `Saturday, 21-Nov-26`. */
const SEPARATOR = /,(?![ \t]*\d\d[ -][A-Z][a-z]{2}[ -])/;

/**
 * Calls `onValue` with each value of a field that is defined to have a single one, because a proxy may have joined several
 * lines. The value of an empty element is empty. Drops parameters such as the `w` of `0;w=21600` (Docker Hub).
 */
export function forEachValue(field: string, onValue: (value: string) => void): void {
  if (!field.includes(',')) return onValue(stripParameters(field));
  for (const element of field.split(SEPARATOR)) onValue(stripParameters(element));
}

/** A value without its parameters, and without quotes around it. */
function stripParameters(element: string): string {
  const end = element.indexOf(';');
  const value = trimSpace(end < 0 ? element : element.slice(0, end));
  return value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}
