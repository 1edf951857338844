/** A comma that a day and a month follow belongs to an HTTP-date: `Sat, 21 Nov 2026`, `Saturday, 21-Nov-26`. */
const SEPARATOR = /,(?![ \t]*\d\d[ -][A-Z][a-z]{2}[ -])/;

/**
 * Calls `note` with each value of a field that is defined to have a single one: a proxy may have joined several lines. Skips empty
 * elements, and drops parameters such as the `w` of `0;w=21600` (Docker Hub).
 */
export function eachValue(field: string, note: (value: string) => void): void {
  if (!field.includes(',')) return note(itemOf(field));
  for (const element of field.split(SEPARATOR)) if (element.trim() !== '') note(itemOf(element));
}

/** A value without its parameters, and without quotes around it. */
function itemOf(element: string): string {
  const end = element.indexOf(';');
  const value = (end < 0 ? element : element.slice(0, end)).trim();
  return value.length > 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}
