/** What is kept knows how much of memory it takes. */
export interface Weighed {
  /** In bytes, about. */
  readonly size: number;
}

/** The newest, bounded in number and in bytes: the oldest are forgotten for them. */
export class Ring<T extends Weighed> {
  readonly #most: number;
  readonly #mostBytes: number;
  readonly #items: (T | undefined)[] = [];
  /** Where the next one goes. */
  #next = 0;
  #size = 0;
  #bytes = 0;
  #forgotten = 0;

  /** @param most ≥ 1 */
  constructor(most: number, mostBytes: number) {
    this.#most = most;
    this.#mostBytes = mostBytes;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How many had to go for others. */
  get forgotten(): number {
    return this.#forgotten;
  }

  /** How full it is, in number or in bytes, whichever is more: 0 to 1. */
  get fullness(): number {
    return Math.max(this.#size / this.#most, this.#bytes / this.#mostBytes);
  }

  /** One that alone is larger than all may be is not kept. */
  add(item: T): void {
    if (item.size > this.#mostBytes) return;
    while (this.#size === this.#most || this.#bytes + item.size > this.#mostBytes) this.#forgetOldest();
    this.#items[this.#next] = item;
    this.#next = (this.#next + 1) % this.#most;
    this.#size += 1;
    this.#bytes += item.size;
  }

  /** Newest first. */
  *[Symbol.iterator](): IterableIterator<T> {
    for (let back = 1; back <= this.#size; back += 1) {
      const item = this.#items[(this.#next - back + this.#most) % this.#most];
      if (item !== undefined) yield item;
    }
  }

  #forgetOldest(): void {
    const at = (this.#next - this.#size + this.#most) % this.#most;
    this.#bytes -= this.#items[at]?.size ?? 0;
    this.#items[at] = undefined;
    this.#size -= 1;
    this.#forgotten += 1;
  }
}
