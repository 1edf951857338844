/** The link of a slot that is in no list. A link to a slot is the slot + 2. */
const UNLINKED = 0;
const END = 1;

/**
 * A doubly linked list of slots, in the order in which they were pushed. Its links can be stored in the owner's records, near
 * the other data of a slot.
 */
export class SlotList {
  readonly #recordWords: number;
  readonly #offset: number;
  /** Two words for each slot: the links to the next and the previous one. */
  #words = new Int32Array(0);
  #first = END;
  #last = END;

  /** @param recordWords the size of a record, initially zero, of which two words from `offset` on are for the links */
  constructor(recordWords = 2, offset = 0) {
    this.#recordWords = recordWords;
    this.#offset = offset;
  }

  get first(): number | undefined {
    return this.#first === END ? undefined : this.#first - 2;
  }

  has(slot: number): boolean {
    return (this.#words[this.#linkOffset(slot + 2)] ?? UNLINKED) !== UNLINKED;
  }

  /** Makes room for slots below `length`. @param words the owner's records, with their former contents */
  grow(length: number, words: Int32Array<ArrayBuffer> = enlarge(this.#words, this.#recordWords * length)): void {
    this.#words = words;
  }

  push(slot: number): void {
    if (this.has(slot)) return;
    const link = slot + 2;
    const at = this.#linkOffset(link);
    this.#words[at] = END;
    this.#words[at + 1] = this.#last;
    if (this.#last === END) this.#first = link;
    else this.#words[this.#linkOffset(this.#last)] = link;
    this.#last = link;
  }

  remove(slot: number): void {
    const at = this.#linkOffset(slot + 2);
    const next = this.#words[at] ?? UNLINKED;
    if (next === UNLINKED) return;
    const previous = this.#words[at + 1] ?? END;
    if (previous === END) this.#first = next;
    else this.#words[this.#linkOffset(previous)] = next;
    if (next === END) this.#last = previous;
    else this.#words[this.#linkOffset(next) + 1] = previous;
    this.#words[at] = UNLINKED;
  }

  /** The position of the first of a slot's two links. */
  #linkOffset(link: number): number {
    return this.#recordWords * (link - 2) + this.#offset;
  }
}

function enlarge(from: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const to = new Int32Array(length);
  to.set(from);
  return to;
}
