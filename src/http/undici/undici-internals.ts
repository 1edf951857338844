/** The value that an object of undici keeps under a private symbol; undefined if there is none. */
export function internalOf(object: unknown, name: string): unknown {
  if (typeof object !== 'object' || object === null) return undefined;
  const key = Object.getOwnPropertySymbols(object).find(({ description }) => description === name);
  return key === undefined ? undefined : Reflect.get(object, key);
}
