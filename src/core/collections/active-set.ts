/** What is on a roster knows its place there. */
export interface Listed {
  /** −1 while on none. Owned by the roster. */
  place: number;
}

/**
 * Those that are there now, in no order. Not a `Set`: V8 (Node 24) makes a new table for one after every few that came and went,
 * and lets the old table point to the new one, for iterators. Once a table has grown old it keeps all tables after it, with all
 * that was in them, until the next full collection: each scavenge copied 10 KB of every request that had long been over.
 */
export class Roster<T extends Listed> implements Iterable<T> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    item.place = this.#items.length;
    this.#items.push(item);
  }

  /** No harm when it is not there. */
  remove(item: T): void {
    const { place } = item;
    if (this.#items[place] !== item) return;
    item.place = -1;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    last.place = place;
    this.#items[place] = last;
  }

  /** As they are at its beginning: what happens meanwhile may take them away. */
  [Symbol.iterator](): IterableIterator<T> {
    return this.#items.slice().values();
  }
}
