/** Sets `key` in a map that keeps to a size by forgetting the oldest. */
export function remember<V>(map: Map<string, V>, key: string, value: V, size: number): void {
  if (map.size >= size && !map.has(key)) {
    const oldest = map.keys().next();
    if (oldest.done !== true) map.delete(oldest.value);
  }
  map.set(key, value);
}
