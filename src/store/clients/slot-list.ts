/** In no list; else, of a link, a slot plus 2. */
const OUT = 0;
const NONE = 1;

/**
 * A doubly linked list of small numbers: the order in which they were pushed. Its links may stand in the records of
 * somebody else, who then finds them where the rest is.
 */
export class SlotList {
  readonly #record: number;
  readonly #offset: number;
  /** Of each slot, two: who comes after it, and who before. */
  #words = new Int32Array(0);
  #first = NONE;
  #last = NONE;

  /** @param record words of one, at first 0; two of them, from `offset` on, are for the links */
  constructor(record = 2, offset = 0) {
    this.#record = record;
    this.#offset = offset;
  }

  get first(): number | undefined {
    return this.#first === NONE ? undefined : this.#first - 2;
  }

  has(slot: number): boolean {
    return (this.#words[this.#nextOf(slot + 2)] ?? OUT) !== OUT;
  }

  /** Makes room for slots below `length`. @param words the records, with what they had before; else its own */
  grow(length: number, words: Int32Array<ArrayBuffer> = widen(this.#words, this.#record * length)): void {
    this.#words = words;
  }

  push(slot: number): void {
    if (this.has(slot)) return;
    const link = slot + 2;
    const at = this.#nextOf(link);
    this.#words[at] = NONE;
    this.#words[at + 1] = this.#last;
    if (this.#last === NONE) this.#first = link;
    else this.#words[this.#nextOf(this.#last)] = link;
    this.#last = link;
  }

  remove(slot: number): void {
    const at = this.#nextOf(slot + 2);
    const next = this.#words[at] ?? OUT;
    if (next === OUT) return;
    const previous = this.#words[at + 1] ?? NONE;
    if (previous === NONE) this.#first = next;
    else this.#words[this.#nextOf(previous)] = next;
    if (next === NONE) this.#last = previous;
    else this.#words[this.#nextOf(next) + 1] = previous;
    this.#words[at] = OUT;
  }

  /** Where the first word of its links stands. */
  #nextOf(link: number): number {
    return this.#record * (link - 2) + this.#offset;
  }
}

function widen(from: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const to = new Int32Array(length);
  to.set(from);
  return to;
}
