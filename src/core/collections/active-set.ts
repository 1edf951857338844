/** A member stores its index in the set. */
export interface ActiveSetMember {
  /** −1 while in no set. Owned by the set. */
  place: number;
}

/**
 * An unordered set of present members. Not a `Set`: after every few additions and deletions, V8 (Node 24) gives a `Set` a new
 * table, and the old table points to the new one, for iterators. Once a table is in the old generation, it retains all later
 * tables and their former entries until the next full collection: each scavenge copied 10 KB for every request that had ended.
 */
export class ActiveSet<T extends ActiveSetMember> implements Iterable<T> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** A live view, in no order. */
  get items(): readonly T[] {
    return this.#items;
  }

  add(item: T): void {
    item.place = this.#items.length;
    this.#items.push(item);
  }

  /** Does nothing if the item is not a member. */
  remove(item: T): void {
    const { place } = item;
    if (this.#items[place] !== item) return;
    item.place = -1;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    last.place = place;
    this.#items[place] = last;
  }

  /** Iterates over a copy, because members may be removed meanwhile. */
  [Symbol.iterator](): IterableIterator<T> {
    return this.#items.slice().values();
  }
}
