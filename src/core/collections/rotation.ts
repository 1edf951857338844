import { ActiveSet, type ActiveSetMember } from './active-set.ts';

/** An `ActiveSet` whose members are visited about in turn, some at a time. After a removal, one may be visited early or miss a round. */
export class Rotation<T extends ActiveSetMember> extends ActiveSet<T> {
  #nextIndex = 0;

  /** Removes and returns the last member. */
  pop(): T | undefined {
    const last = this.items.at(-1);
    if (last !== undefined) this.remove(last);
    return last;
  }

  /** Visits the members whose turn is next, each at most once. `visit` must not add or remove members. */
  visitNext(count: number, visit: (item: T) => void): void {
    for (let left = Math.min(count, this.size); left > 0; left -= 1) {
      const item = this.items[this.#nextIndex] ?? this.items[0];
      if (item === undefined) return;
      this.#nextIndex = item.place + 1;
      visit(item);
    }
  }
}
