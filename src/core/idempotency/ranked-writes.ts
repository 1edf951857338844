/** The first of many, in order; of equals, the first that was added is the first. */
export class RankedWrites<Write> {
  readonly #limit: number;
  readonly #isBefore: (one: Write, other: Write) => boolean;
  readonly #ranked: Write[] = [];
  #count = 0;

  constructor(limit: number, isBefore: (one: Write, other: Write) => boolean) {
    this.#limit = limit;
    this.#isBefore = isBefore;
  }

  /** How many writes were added. */
  get count(): number {
    return this.#count;
  }

  /** The first writes, at most `limit`. */
  get first(): readonly Write[] {
    return this.#ranked;
  }

  add(write: Write): void {
    this.#count += 1;
    const last = this.#ranked.at(-1);
    if (this.#ranked.length >= this.#limit && last !== undefined && !this.#isBefore(write, last)) return;
    let [low, high] = [0, this.#ranked.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#ranked[middle];
      if (other !== undefined && this.#isBefore(write, other)) high = middle;
      else low = middle + 1;
    }
    this.#ranked.splice(low, 0, write);
    if (this.#ranked.length > this.#limit) this.#ranked.pop();
  }
}

/** Whether a write comes first by the time at which it was first sent. @param other one that was not sent is the newest */
export function isSentBefore(order: 'newest' | 'oldest', one: number | undefined, other: number | undefined): boolean {
  const [earlier, later] = order === 'oldest' ? [one, other] : [other, one];
  return (earlier ?? Number.POSITIVE_INFINITY) < (later ?? Number.POSITIVE_INFINITY);
}
