/** The number of keys with a count of 0 that are kept, because such keys often return. */
const ZEROS_KEPT = 256;

/**
 * Counts by key, for keys that come and go all the time. A key with a count of 0 stays for a while: after every few additions
 * and deletions, V8 (Node 24) gives a `Map` a new table, and the old table points to the new one. Once a table is in the old
 * generation, it retains all later tables until the next full collection (see active-set.ts).
 */
export class CounterMap {
  #counts = new Map<string, number>();
  #zeroCount = 0;

  /** @param by above 0 */
  increment(key: string, by = 1): void {
    const count = this.#counts.get(key);
    if (count === 0) this.#zeroCount -= 1;
    this.#counts.set(key, (count ?? 0) + by);
  }

  /** Down to 0. Returns the count that is left. */
  decrement(key: string, by = 1): number {
    const count = this.count(key);
    if (count === 0) return 0;
    this.#counts.set(key, Math.max(0, count - by));
    if (count > by) return count - by;
    this.#zeroCount += 1;
    if (this.#zeroCount > ZEROS_KEPT && 2 * this.#zeroCount > this.#counts.size) this.#sweep();
    return 0;
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  /** The counts of all keys in memory, some of them 0. */
  counts(): Iterable<number> {
    return this.#counts.values();
  }

  /** Keys in memory: at most 257 plus twice as many as have a count above 0. */
  get size(): number {
    return this.#counts.size;
  }

  #sweep(): void {
    const kept = new Map<string, number>();
    for (const [key, count] of this.#counts) if (count > 0) kept.set(key, count);
    this.#counts = kept;
    this.#zeroCount = 0;
  }
}
