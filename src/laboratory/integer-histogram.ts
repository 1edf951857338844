/** A histogram of whole numbers from 0. */
export class IntegerHistogram {
  readonly #counts: number[] = [];

  get values(): readonly number[] {
    return this.#counts;
  }

  add(index: number): void {
    while (this.#counts.length <= index) this.#counts.push(0);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }
}
