import type { Millis } from '../../core/scalars.ts';

/** Ascending times in a ring buffer that grows. Each operation takes amortised constant time. */
export class TimestampRing {
  #ring = new Float64Array(64);
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** @param i index from 0 (the oldest), below `length` */
  at(i: number): Millis {
    return this.#ring[(this.#head + i) % this.#ring.length] ?? Number.NaN;
  }

  /** @param time not before the newest */
  push(time: Millis): void {
    if (this.#length === this.#ring.length) this.#grow();
    this.#ring[(this.#head + this.#length) % this.#ring.length] = time;
    this.#length += 1;
  }

  /** Removes all times up to and including this one. */
  dropUntil(time: Millis): void {
    while (this.#length > 0 && this.at(0) <= time) {
      this.#head = (this.#head + 1) % this.#ring.length;
      this.#length -= 1;
    }
  }

  #grow(): void {
    const ring = new Float64Array(2 * this.#ring.length);
    ring.set(this.#ring.subarray(this.#head));
    ring.set(this.#ring.subarray(0, this.#head), this.#ring.length - this.#head);
    this.#ring = ring;
    this.#head = 0;
  }
}
