const NONE = -1;
/** In no list. */
const OUT = -2;

/** A doubly linked list of small numbers, in two typed arrays: the order in which they were pushed. */
export class SlotList {
  #next = new Int32Array(0);
  #previous = new Int32Array(0);
  #first = NONE;
  #last = NONE;

  get first(): number | undefined {
    return this.#first === NONE ? undefined : this.#first;
  }

  has(slot: number): boolean {
    return (this.#next[slot] ?? OUT) !== OUT;
  }

  /** Makes room for slots below `length`. */
  grow(length: number): void {
    this.#next = widen(this.#next, length);
    this.#previous = widen(this.#previous, length);
  }

  push(slot: number): void {
    if (this.has(slot)) return;
    this.#previous[slot] = this.#last;
    this.#next[slot] = NONE;
    if (this.#last === NONE) this.#first = slot;
    else this.#next[this.#last] = slot;
    this.#last = slot;
  }

  remove(slot: number): void {
    if (!this.has(slot)) return;
    const next = this.#next[slot] ?? NONE;
    const previous = this.#previous[slot] ?? NONE;
    if (previous === NONE) this.#first = next;
    else this.#next[previous] = next;
    if (next === NONE) this.#last = previous;
    else this.#previous[next] = previous;
    this.#next[slot] = OUT;
  }
}

function widen(from: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const to = new Int32Array(length).fill(OUT);
  to.set(from);
  return to;
}
