/** An item of a queue, of one at a time. The links belong to the queue. */
export interface LinkedItem<T> {
  previous: T | undefined;
  next: T | undefined;
}

/**
 * A first-in, first-out queue from which any item can be removed. A removed item has no links: in the old generation it would
 * retain all later items, as a `Set` does (see active-set.ts).
 */
export class LinkedQueue<T extends LinkedItem<T>> {
  head: T | undefined = undefined;
  #tail: T | undefined = undefined;
  length = 0;

  push(item: T): void {
    item.previous = this.#tail;
    item.next = undefined;
    if (this.#tail === undefined) this.head = item;
    else this.#tail.next = item;
    this.#tail = item;
    this.length += 1;
  }

  shift(): T | undefined {
    const { head } = this;
    if (head !== undefined) this.remove(head);
    return head;
  }

  /** @returns whether the item was in the queue */
  remove(item: T): boolean {
    const { previous, next } = item;
    if (previous === undefined && this.head !== item) return false;
    if (previous === undefined) this.head = next;
    else previous.next = next;
    if (next === undefined) this.#tail = previous;
    else next.previous = previous;
    item.previous = undefined;
    item.next = undefined;
    this.length -= 1;
    return true;
  }

  /** Removes all items. @returns them in order */
  clear(): T[] {
    const all: T[] = [];
    for (let item = this.shift(); item !== undefined; item = this.shift()) all.push(item);
    return all;
  }
}
