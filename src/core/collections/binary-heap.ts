/** An item stores its index in the heap, so that it can be moved or removed in logarithmic time. */
export interface HeapItem {
  /** −1 while in no heap. Owned by the heap. */
  heapIndex: number;
}

/** A binary min-heap by a key that its items carry. An item is in one heap at a time. */
export class BinaryHeap<T extends HeapItem> {
  readonly #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  /** In no order. */
  get items(): readonly T[] {
    return this.#items;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    item.heapIndex = this.#items.length;
    this.#items.push(item);
    this.#rise(item);
  }

  remove(item: T): void {
    const index = item.heapIndex;
    if (index < 0) return;
    item.heapIndex = -1;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    this.#place(last, index);
    this.update(last);
  }

  /** To be called when an item's key has changed. */
  update(item: T): void {
    if (item.heapIndex < 0) return;
    this.#rise(item);
    this.#sink(item);
  }

  #rise(item: T): void {
    let index = item.heapIndex;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.#items[parentIndex];
      if (parent === undefined || !this.#before(item, parent)) break;
      this.#place(parent, index);
      index = parentIndex;
    }
    this.#place(item, index);
  }

  #sink(item: T): void {
    let index = item.heapIndex;
    for (;;) {
      const leftIndex = 2 * index + 1;
      const left = this.#items[leftIndex];
      if (left === undefined) break;
      const right = this.#items[leftIndex + 1];
      const [child, childIndex] =
        right !== undefined && this.#before(right, left) ? [right, leftIndex + 1] : [left, leftIndex];
      if (!this.#before(child, item)) break;
      this.#place(child, index);
      index = childIndex;
    }
    this.#place(item, index);
  }

  #place(item: T, index: number): void {
    this.#items[index] = item;
    item.heapIndex = index;
  }
}
