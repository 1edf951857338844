/** In no heap. */
const OUT = -1;

/** A binary min-heap of small numbers, in typed arrays: the one with the least key comes first. */
export class SlotHeap {
  #keys = new Float64Array(0);
  #slots = new Int32Array(0);
  /** Where each slot stands. */
  #places = new Int32Array(0);
  #size = 0;

  get first(): number | undefined {
    return this.#size === 0 ? undefined : this.#slots[0];
  }

  has(slot: number): boolean {
    return (this.#places[slot] ?? OUT) !== OUT;
  }

  /** Makes room for slots below `length`. */
  grow(length: number): void {
    const [keys, slots, places] = [this.#keys, this.#slots, this.#places];
    this.#keys = new Float64Array(length);
    this.#slots = new Int32Array(length);
    this.#places = new Int32Array(length).fill(OUT);
    this.#keys.set(keys);
    this.#slots.set(slots);
    this.#places.set(places);
  }

  push(slot: number, key: number): void {
    if (this.has(slot)) return;
    this.#keys[slot] = key;
    this.#size += 1;
    this.#rise(slot, this.#size - 1);
  }

  remove(slot: number): void {
    if (!this.has(slot)) return;
    const place = this.#places[slot] ?? OUT;
    this.#places[slot] = OUT;
    this.#size -= 1;
    const last = this.#slots[this.#size] ?? OUT;
    if (last === slot) return;
    this.#rise(last, place);
    this.#sink(last, this.#places[last] ?? OUT);
  }

  #rise(slot: number, from: number): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (this.#keyAt(parent) <= this.#keyOf(slot)) break;
      this.#put(this.#slots[parent] ?? OUT, place);
      place = parent;
    }
    this.#put(slot, place);
  }

  #sink(slot: number, from: number): void {
    let place = from;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && this.#keyAt(child + 1) < this.#keyAt(child)) child += 1;
      if (this.#keyAt(child) >= this.#keyOf(slot)) break;
      this.#put(this.#slots[child] ?? OUT, place);
      place = child;
    }
    this.#put(slot, place);
  }

  #put(slot: number, place: number): void {
    this.#slots[place] = slot;
    this.#places[slot] = place;
  }

  #keyAt(place: number): number {
    return this.#keyOf(this.#slots[place] ?? OUT);
  }

  #keyOf(slot: number): number {
    return this.#keys[slot] ?? 0;
  }
}
