/** Sets `key` in a map of bounded size; the oldest entry is removed when it is full. */
export function setBounded<V>(map: Map<string, V>, key: string, value: V, size: number): void {
  if (map.size >= size && !map.has(key)) {
    const oldest = map.keys().next();
    if (oldest.done !== true) map.delete(oldest.value);
  }
  map.set(key, value);
}
