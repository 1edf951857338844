import { suggest } from '../config/values/suggest.ts';

/**
 * Rejects unknown options, because a typo would otherwise have no effect and no message.
 * @param owner the function or plugin, for the message
 * @throws TypeError if the options are no object, or for an unknown name
 */
export function rejectUnknownOptions(options: unknown, names: readonly string[], owner: string): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${owner} takes its options as an object, not ${String(options)}`);
  }
  for (const name of Object.keys(options)) {
    if (names.includes(name)) continue;
    const near = suggest(name, names);
    throw new TypeError(`${owner} has no option ${name}${near === undefined ? '' : ` (did you mean ${near}?)`}`);
  }
}
