/** So many that are at none are kept, for who comes again. */
const KEPT = 256;

/**
 * How many of each there are, where they come and go all the time. A key that is at none stays for a while: of a `Map` whose keys come
 * and go V8 (Node 24) makes a new table after every few, and the old one points to the new one. Once one has grown old,
 * it keeps all tables after it until the next full collection (see core/collections/active-set.ts).
 */
export class Tally {
  #counts = new Map<string, number>();
  #atNone = 0;

  add(key: string): void {
    const count = this.#counts.get(key);
    if (count === 0) this.#atNone -= 1;
    this.#counts.set(key, (count ?? 0) + 1);
  }

  /** No harm where there is none. */
  remove(key: string): void {
    const count = this.of(key);
    if (count === 0) return;
    this.#counts.set(key, count - 1);
    if (count > 1) return;
    this.#atNone += 1;
    if (this.#atNone > KEPT && 2 * this.#atNone > this.#counts.size) this.#sweep();
  }

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  /** Keys that take memory: at most 257 and twice as many as are above none. */
  get size(): number {
    return this.#counts.size;
  }

  #sweep(): void {
    const kept = new Map<string, number>();
    for (const [key, count] of this.#counts) if (count > 0) kept.set(key, count);
    this.#counts = kept;
    this.#atNone = 0;
  }
}
