import type { RequestAttributes } from './request-attributes.ts';
import { matchesAttributes, ATTRIBUTE_COUNT } from './request-attributes.ts';

const MAX_RESULTS = 64;
const RECORD_LENGTH = ATTRIBUTE_COUNT + 1;

/** The attributes of the last failed and accepted requests, in one array of numbers. Filled only while there are failures. */
export class RecentResults {
  /** A record for each request: 1 if it failed, else 0; then its attributes. */
  readonly #numbers: number[] = [];
  #next = 0;

  add(isFailure: boolean, attributes: RequestAttributes): void {
    const at = RECORD_LENGTH * this.#next;
    this.#numbers[at] = isFailure ? 1 : 0;
    for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) this.#numbers[at + 1 + i] = attributes[i] ?? 0;
    this.#next = (this.#next + 1) % MAX_RESULTS;
  }

  /** The number of failed, or accepted, requests within the scope. */
  count(areFailures: boolean, scope: RequestAttributes): number {
    const kind = areFailures ? 1 : 0;
    let count = 0;
    for (let at = 0; at < this.#numbers.length; at += RECORD_LENGTH) {
      if (this.#numbers[at] === kind && matchesAttributes(scope, this.#numbers.slice(at + 1, at + RECORD_LENGTH))) {
        count += 1;
      }
    }
    return count;
  }

  clear(): void {
    this.#numbers.length = 0;
    this.#next = 0;
  }
}
