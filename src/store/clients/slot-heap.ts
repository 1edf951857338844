/** The position of a slot that is not in the heap. */
const ABSENT = -1;

/** A binary min-heap of slots, in typed arrays: the slot with the smallest key is first. */
export class SlotHeap {
  #keys = new Float64Array(0);
  #slots = new Int32Array(0);
  /** The position of each slot. */
  #positions = new Int32Array(0);
  #size = 0;

  get first(): number | undefined {
    return this.#size === 0 ? undefined : this.#slots[0];
  }

  has(slot: number): boolean {
    return (this.#positions[slot] ?? ABSENT) !== ABSENT;
  }

  /** Makes room for slots below `length`. */
  grow(length: number): void {
    const [keys, slots, positions] = [this.#keys, this.#slots, this.#positions];
    this.#keys = new Float64Array(length);
    this.#slots = new Int32Array(length);
    this.#positions = new Int32Array(length).fill(ABSENT);
    this.#keys.set(keys);
    this.#slots.set(slots);
    this.#positions.set(positions);
  }

  push(slot: number, key: number): void {
    if (this.has(slot)) return;
    this.#keys[slot] = key;
    this.#size += 1;
    this.#siftUp(slot, this.#size - 1);
  }

  remove(slot: number): void {
    if (!this.has(slot)) return;
    const position = this.#positions[slot] ?? ABSENT;
    this.#positions[slot] = ABSENT;
    this.#size -= 1;
    const last = this.#slots[this.#size] ?? ABSENT;
    if (last === slot) return;
    this.#siftUp(last, position);
    this.#siftDown(last, this.#positions[last] ?? ABSENT);
  }

  #siftUp(slot: number, from: number): void {
    let position = from;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if (this.#keyAtPosition(parent) <= this.#keyOf(slot)) break;
      this.#put(this.#slots[parent] ?? ABSENT, position);
      position = parent;
    }
    this.#put(slot, position);
  }

  #siftDown(slot: number, from: number): void {
    let position = from;
    for (;;) {
      let child = 2 * position + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && this.#keyAtPosition(child + 1) < this.#keyAtPosition(child)) child += 1;
      if (this.#keyAtPosition(child) >= this.#keyOf(slot)) break;
      this.#put(this.#slots[child] ?? ABSENT, position);
      position = child;
    }
    this.#put(slot, position);
  }

  #put(slot: number, position: number): void {
    this.#slots[position] = slot;
    this.#positions[slot] = position;
  }

  #keyAtPosition(position: number): number {
    return this.#keyOf(this.#slots[position] ?? ABSENT);
  }

  #keyOf(slot: number): number {
    return this.#keys[slot] ?? 0;
  }
}
