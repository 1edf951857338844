import type { Millis } from '../../core/scalars.ts';

/**
 * A priority queue of events by time; events of equal time keep the order of insertion. Typed arrays, so that a million
 * events make no objects.
 */
export class EventQueue<T> {
  #at = new Float64Array(1024);
  /** The order of insertion, which decides between equal times. */
  #order = new Float64Array(1024);
  readonly #what: T[] = [];
  #size = 0;
  #pushed = 0;

  get size(): number {
    return this.#size;
  }

  /** When the next one is due; Infinity when there is none. */
  get nextAt(): Millis {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : (this.#at[0] ?? Number.POSITIVE_INFINITY);
  }

  push(at: Millis, what: T): void {
    if (this.#size === this.#at.length) this.#grow();
    let index = this.#size;
    const order = this.#pushed;
    this.#size += 1;
    this.#pushed += 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if ((this.#at[parent] ?? 0) <= at) break; // an event of equal time was inserted before
      this.#move(parent, index);
      index = parent;
    }
    this.#put(index, at, order, what);
  }

  /** Removes and returns the next event. */
  pop(): T | undefined {
    const first = this.#what[0];
    this.#size -= 1;
    const last = this.#size;
    const what = this.#what.pop();
    if (last <= 0 || what === undefined) {
      this.#size = Math.max(0, last);
      return first;
    }
    const at = this.#at[last] ?? 0;
    const order = this.#order[last] ?? 0;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= last) break;
      if (child + 1 < last && this.#isBefore(child + 1, this.#at[child] ?? 0, this.#order[child] ?? 0)) child += 1;
      if (!this.#isBefore(child, at, order)) break;
      this.#move(child, index);
      index = child;
    }
    this.#put(index, at, order, what);
    return first;
  }

  #isBefore(index: number, at: Millis, order: number): boolean {
    const own = this.#at[index] ?? 0;
    return own < at || (own === at && (this.#order[index] ?? 0) < order);
  }

  #move(from: number, to: number): void {
    const what = this.#what[from];
    if (what !== undefined) this.#put(to, this.#at[from] ?? 0, this.#order[from] ?? 0, what);
  }

  #put(index: number, at: Millis, order: number, what: T): void {
    this.#at[index] = at;
    this.#order[index] = order;
    this.#what[index] = what;
  }

  #grow(): void {
    const at = new Float64Array(2 * this.#at.length);
    const order = new Float64Array(2 * this.#at.length);
    at.set(this.#at);
    order.set(this.#order);
    this.#at = at;
    this.#order = order;
  }
}
