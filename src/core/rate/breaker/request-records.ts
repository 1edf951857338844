import type { RequestAttributes } from './request-attributes.ts';
import { ATTRIBUTE_COUNT } from './request-attributes.ts';

const RECORD_LENGTH = ATTRIBUTE_COUNT + 1;

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

  /** Whether the request at this index, as in `resultAt`, is within the scope. */
  matches(index: number, scope: RequestAttributes): boolean {
    const start = this.#startOf(index) + 1;
    for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) {
      const value = scope[i] ?? 0;
      if (value !== 0 && value !== this.#numbers[start + i]) return false;
    }
    return true;
  }

  /** The attributes that define `part`, with the values of the request at this index; undefined if it lacks one of them. */
  partLike(part: RequestAttributes, index: number): RequestAttributes | undefined {
    const start = this.#startOf(index) + 1;
    const other: number[] = [];
    for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) {
      const value = part[i] === 0 ? 0 : (this.#numbers[start + i] ?? 0);
      if (value === 0 && part[i] !== 0) return undefined;
      other.push(value);
    }
    return other;
  }

  /** The sum of the attributes that define `part`, with the values of the request at this index; undefined if it lacks one of them. */
  sumLike(part: RequestAttributes, index: number): number | undefined {
    const start = this.#startOf(index) + 1;
    let sum = 0;
    for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) {
      if (part[i] === 0) continue;
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
