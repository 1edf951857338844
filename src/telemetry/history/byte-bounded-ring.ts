/** An item with its approximate memory use. */
export interface SizedItem {
  /** In bytes, approximately. */
  readonly sizeBytes: number;
}

/** The newest items, bounded in number and in bytes: the oldest are evicted for new ones. */
export class ByteBoundedRing<T extends SizedItem> {
  readonly #maxItems: number;
  readonly #maxBytes: number;
  readonly #items: (T | undefined)[] = [];
  /** Index of the next item. */
  #next = 0;
  #size = 0;
  #bytes = 0;
  #evicted = 0;

  /** @param maxItems ≥ 1 */
  constructor(maxItems: number, maxBytes: number) {
    this.#maxItems = maxItems;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Number of items evicted so far. */
  get evicted(): number {
    return this.#evicted;
  }

  /** Use of the bound in number or in bytes, whichever is higher: 0 to 1. */
  get fullness(): number {
    return Math.max(this.#size / this.#maxItems, this.#bytes / this.#maxBytes);
  }

  /** Drops an item that is larger than the whole ring. */
  add(item: T): void {
    if (item.sizeBytes > this.#maxBytes) return;
    while (this.#size === this.#maxItems || this.#bytes + item.sizeBytes > this.#maxBytes) this.#evictOldest();
    this.#items[this.#next] = item;
    this.#next = (this.#next + 1) % this.#maxItems;
    this.#size += 1;
    this.#bytes += item.sizeBytes;
  }

  /** Newest first. */
  *[Symbol.iterator](): IterableIterator<T> {
    for (let back = 1; back <= this.#size; back += 1) {
      const item = this.#items[(this.#next - back + this.#maxItems) % this.#maxItems];
      if (item !== undefined) yield item;
    }
  }

  #evictOldest(): void {
    const at = (this.#next - this.#size + this.#maxItems) % this.#maxItems;
    this.#bytes -= this.#items[at]?.sizeBytes ?? 0;
    this.#items[at] = undefined;
    this.#size -= 1;
    this.#evicted += 1;
  }
}
