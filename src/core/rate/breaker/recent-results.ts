import type { Source } from './request-attributes.ts';
import { isWithin, SOURCE_NUMBERS } from './request-attributes.ts';

const MOST = 64;
const EACH = SOURCE_NUMBERS + 1;

/** Where the last requests came from that failed or passed, in times of trouble: numbers in one piece. */
export class RecentAnswers {
  /** Of each: 1 where it failed, and its source. */
  readonly #numbers: number[] = [];
  #next = 0;

  note(isFailure: boolean, source: Source): void {
    const at = EACH * this.#next;
    this.#numbers[at] = isFailure ? 1 : 0;
    for (let i = 0; i < SOURCE_NUMBERS; i += 1) this.#numbers[at + 1 + i] = source[i] ?? 0;
    this.#next = (this.#next + 1) % MOST;
  }

  /** How many of these requests failed, or passed. */
  count(areFailures: boolean, scope: Source): number {
    const kind = areFailures ? 1 : 0;
    let count = 0;
    for (let at = 0; at < this.#numbers.length; at += EACH) {
      if (this.#numbers[at] === kind && isWithin(scope, this.#numbers.slice(at + 1, at + EACH))) count += 1;
    }
    return count;
  }

  clear(): void {
    this.#numbers.length = 0;
    this.#next = 0;
  }
}
