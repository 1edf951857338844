import type { RequestAttributes } from './request-attributes.ts';
import { ATTRIBUTE_COUNT } from './request-attributes.ts';

/**
 * Finds what failed requests have in common, by the majority vote of Boyer and Moore (1991) on each attribute. A value is
 * common if a clear majority shares it: not all need to, because unrelated requests fail too.
 */
export class MajorityVote {
  readonly #margin: number;
  readonly #values: number[] = [];
  readonly #votes: number[] = [];
  #count = 0;

  /** @param margin the lead that a common value needs, as a share of all votes: 0.2 is three of five, 0.5 three of four */
  constructor(margin: number) {
    this.#margin = margin;
  }

  /** @param attributes undefined if unknown: the request has nothing in common with others */
  add(attributes: RequestAttributes | undefined): void {
    this.#count += 1;
    for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) {
      const value = attributes?.[i] ?? 0;
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

  /** The common attributes; 0 for those that are not common. */
  get common(): number[] {
    const scope: number[] = [];
    for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) {
      const isCommon = this.#count > 0 && (this.#votes[i] ?? 0) >= this.#margin * this.#count;
      scope.push(isCommon ? (this.#values[i] ?? 0) : 0);
    }
    return scope;
  }

  /** Halves the weight of the votes so far. */
  halve(): void {
    this.#count /= 2;
    for (let i = 0; i < this.#votes.length; i += 1) this.#votes[i] = (this.#votes[i] ?? 0) / 2;
  }

  clear(): void {
    if (this.#count === 0) return;
    this.#count = 0;
    for (let i = 0; i < this.#votes.length; i += 1) this.#votes[i] = 0;
  }
}
