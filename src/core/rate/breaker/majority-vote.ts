import type { Source } from './request-attributes.ts';
import { SOURCE_NUMBERS } from './request-attributes.ts';

/**
 * Finds what failed requests have in common, by the majority vote of Boyer and Moore (1991) on each number of their sources.
 * What a clear majority shares is in common: it need not be all, for unrelated requests fail too. What less than
 * half share is not.
 */
export class Evidence {
  readonly #left: number;
  readonly #values: number[] = [];
  readonly #votes: number[] = [];
  #count = 0;

  /** @param left the margin of votes that a common value needs, as a share of all: 0.2 is three of five, 0.5 three of four */
  constructor(left: number) {
    this.#left = left;
  }

  /** @param source undefined where it is not known: it has nothing in common with the others */
  note(source: Source | undefined): void {
    this.#count += 1;
    for (let i = 0; i < SOURCE_NUMBERS; i += 1) {
      const value = source?.[i] ?? 0;
      const votes = this.#votes[i] ?? 0;
      if (value === this.#values[i]) this.#votes[i] = votes + 1;
      else if (votes >= 1) this.#votes[i] = votes - 1;
      else {
        this.#values[i] = value;
        this.#votes[i] = 1 - votes;
      }
    }
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** As of a source; numbers that are not in common are 0. */
  get scope(): number[] {
    const scope: number[] = [];
    for (let i = 0; i < SOURCE_NUMBERS; i += 1) {
      const isCommon = this.#count > 0 && (this.#votes[i] ?? 0) >= this.#left * this.#count;
      scope.push(isCommon ? (this.#values[i] ?? 0) : 0);
    }
    return scope;
  }

  /** What was noted so far counts half as much. */
  fade(): void {
    this.#count /= 2;
    for (let i = 0; i < this.#votes.length; i += 1) this.#votes[i] = (this.#votes[i] ?? 0) / 2;
  }

  clear(): void {
    if (this.#count === 0) return;
    this.#count = 0;
    for (let i = 0; i < this.#votes.length; i += 1) this.#votes[i] = 0;
  }
}
