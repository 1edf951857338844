/** A member stores its index in the rotation. */
export interface RotationItem {
  /** −1 while in no rotation. Owned by the rotation. */
  rotationIndex: number;
}

/**
 * A set whose members are visited about in turn, some of them at a time. Adding and removing take constant time. After a removal, one
 * member may be visited early or miss a round.
 */
export class Rotation<T extends RotationItem> {
  readonly #items: T[] = [];
  #nextIndex = 0;

  get size(): number {
    return this.#items.length;
  }

  /** In no order. */
  get items(): readonly T[] {
    return this.#items;
  }

  add(item: T): void {
    item.rotationIndex = this.#items.length;
    this.#items.push(item);
  }

  /** Does nothing if the item is not a member. */
  remove(item: T): void {
    const index = item.rotationIndex;
    if (this.#items[index] !== item) return;
    item.rotationIndex = -1;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    last.rotationIndex = index;
    this.#items[index] = last;
  }

  /** Removes and returns the member added last. */
  pop(): T | undefined {
    const last = this.#items.pop();
    if (last !== undefined) last.rotationIndex = -1;
    return last;
  }

  /** Visits the members whose turn is next, each at most once. `visit` must not add or remove members. */
  visitNext(count: number, visit: (item: T) => void): void {
    for (let left = Math.min(count, this.#items.length); left > 0; left -= 1) {
      const item = this.#items[this.#nextIndex] ?? this.#items[0];
      if (item === undefined) return;
      this.#nextIndex = item.rotationIndex + 1;
      visit(item);
    }
  }
}
