const NONE = -1;
/** In no list. */
const OUT = -2;

/** A doubly linked list of small numbers, in a typed array: the order in which they were pushed. */
export class SlotList {
  /** By twos: who comes after each slot, and who before. */
  #links = new Int32Array(0);
  #first = NONE;
  #last = NONE;

  get first(): number | undefined {
    return this.#first === NONE ? undefined : this.#first;
  }

  has(slot: number): boolean {
    return (this.#links[2 * slot] ?? OUT) !== OUT;
  }

  /** Makes room for slots below `length`. */
  grow(length: number): void {
    const links = new Int32Array(2 * length).fill(OUT, this.#links.length);
    links.set(this.#links);
    this.#links = links;
  }

  push(slot: number): void {
    if (this.has(slot)) return;
    this.#links[2 * slot] = NONE;
    this.#links[2 * slot + 1] = this.#last;
    if (this.#last === NONE) this.#first = slot;
    else this.#links[2 * this.#last] = slot;
    this.#last = slot;
  }

  remove(slot: number): void {
    const next = this.#links[2 * slot] ?? OUT;
    if (next === OUT) return;
    const previous = this.#links[2 * slot + 1] ?? NONE;
    if (previous === NONE) this.#first = next;
    else this.#links[2 * previous] = next;
    if (next === NONE) this.#last = previous;
    else this.#links[2 * next + 1] = previous;
    this.#links[2 * slot] = OUT;
  }
}
