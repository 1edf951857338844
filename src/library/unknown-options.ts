import { suggest } from '../config/values/suggest.ts';

/**
 * Options that are none of these would be read over, and a slip would be a wish that nobody heard.
 * @param of whose options they are, for the message
 * @throws TypeError for what is no object, and for a name that is unknown
 */
export function checkNames(given: unknown, names: readonly string[], of: string): void {
  if (typeof given !== 'object' || given === null) {
    throw new TypeError(`${of} takes its options as an object, not ${String(given)}`);
  }
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue;
    const near = suggest(name, names);
    throw new TypeError(`${of} has no option ${name}${near === undefined ? '' : ` (did you mean ${near}?)`}`);
  }
}
