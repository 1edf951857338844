/** What an object of undici keeps under one of its private symbols. */
export function partOf(whole: unknown, name: string): unknown {
  if (typeof whole !== 'object' || whole === null) return undefined;
  const key = Object.getOwnPropertySymbols(whole).find(({ description }) => description === name);
  return key === undefined ? undefined : Reflect.get(whole, key);
}
