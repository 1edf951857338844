/** What stands in a line, in one at a time. The links are the line's. */
export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
}

/**
 * First come, first served, and any may leave. Who has left points to nobody: one that has grown old would keep all that came
 * after it from the collector, as a `Set` does (see `Roster`).
 */
export class Line<T extends Linked<T>> {
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

  /** Returns whether it was there. */
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

  /** Takes all out, the first of them first. */
  clear(): T[] {
    const all: T[] = [];
    for (let item = this.shift(); item !== undefined; item = this.shift()) all.push(item);
    return all;
  }
}
