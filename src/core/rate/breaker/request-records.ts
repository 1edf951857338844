import type { RequestAttributes } from './request-attributes.ts';
import { ATTRIBUTE_COUNT, commonAttributes, definingAttributes, matchesAttributes } from './request-attributes.ts';

const RECORD_LENGTH = ATTRIBUTE_COUNT + 1;

export interface Tally {
  readonly all: number;
  readonly withResult: number;
}

/** The results and attributes of the last requests, in one array of numbers, used as a ring. Filled only while requests fail. */
export class RequestRecords {
  readonly #capacity: number;
  /** A record for each request: its result, then its attributes. Read only at indexes of records: in Redis, it is unpacked then. */
  #numbers: number[] = [];
  #count = 0;
  #next = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get count(): number {
    return this.#count;
  }

  /** @param attributes empty if unknown */
  add(result: number, attributes: RequestAttributes): void {
    const at = RECORD_LENGTH * this.#next;
    this.#numbers[at] = result;
    for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) this.#numbers[at + 1 + i] = attributes[i] ?? 0;
    this.#next = (this.#next + 1) % this.#capacity;
    this.#count = Math.min(this.#capacity, this.#count + 1);
  }

  /** @param index from 0, the oldest request, to `count` - 1 */
  resultAt(index: number): number {
    return this.#numbers[this.#startOf(index)] ?? 0;
  }

  /** Counts the requests within a scope, and those of them that have this result. */
  tally(scope: RequestAttributes, result: number): Tally {
    const numbers = this.#numbers;
    const indexes = definingAttributes(scope);
    let all = 0;
    let withResult = 0;
    for (let start = 0; start < RECORD_LENGTH * this.#count; start += RECORD_LENGTH) {
      let isWithin = true;
      for (const i of indexes) if (numbers[start + 1 + i] !== scope[i]) isWithin = false;
      if (!isWithin) continue;
      all += 1;
      if (numbers[start] === result) withResult += 1;
    }
    return { all, withResult };
  }

  /** What the requests within a scope that do not have this result have in common; undefined if there are fewer than `min`. */
  commonWithout(result: number, scope: RequestAttributes, min: number): number[] | undefined {
    let common: number[] | undefined;
    let count = 0;
    for (let start = 0; start < RECORD_LENGTH * this.#count; start += RECORD_LENGTH) {
      const attributes: number[] = [];
      for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) attributes.push(this.#numbers[start + 1 + i] ?? 0);
      if (this.#numbers[start] === result || !matchesAttributes(scope, attributes)) continue;
      common = common === undefined ? attributes : commonAttributes(common, attributes);
      count += 1;
    }
    return count < min ? undefined : common;
  }

  /**
   * Identifies the part that the attributes with these indexes define for a request; undefined if it lacks one of them. Attributes are
   * hashes, so that their sum does.
   * @param index as in `resultAt`
   */
  partAt(index: number, indexes: readonly number[]): number | undefined {
    const start = this.#startOf(index) + 1;
    let sum = 0;
    for (const i of indexes) {
      const value = this.#numbers[start + i] ?? 0;
      if (value === 0) return undefined;
      sum += value;
    }
    return sum;
  }

  clear(): void {
    this.#numbers = [];
    this.#count = 0;
    this.#next = 0;
  }

  #startOf(index: number): number {
    const oldest = this.#next - this.#count + this.#capacity;
    return RECORD_LENGTH * ((oldest + index) % this.#capacity);
  }
}
