/** Returns the first `count` items of a possibly infinite sequence. */
export function firstOf<T>(items: Iterable<T>, count: number): T[] {
  const found: T[] = [];
  for (const item of items) {
    found.push(item);
    if (found.length === count) break;
  }
  return found;
}
