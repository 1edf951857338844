/** Plain values, as YAML and JSON have them. */

export type PlainObject = Readonly<Record<string, unknown>>;

/** A mapping of YAML, an object of JSON: neither null nor a list. */
export function isMapping(value: unknown): value is PlainObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a path of keys and indices; undefined if there is none. */
export function valueAt(root: unknown, path: readonly (string | number)[]): unknown {
  let value = root;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = Reflect.get(value, step);
  }
  return value;
}
