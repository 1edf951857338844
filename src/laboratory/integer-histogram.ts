/** How many there were of each whole number from 0 on. */
export class GrowingCounts {
  readonly #counts: number[] = [];

  get values(): readonly number[] {
    return this.#counts;
  }

  add(index: number): void {
    while (this.#counts.length <= index) this.#counts.push(0);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }
}
