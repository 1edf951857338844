import type { Millis } from '../types.ts';

const ERRORS = 8;
const ERROR_SPAN: Millis = 2000;
const ERROR_SHARE = 0.5;

/** A sliding count of failures: connections refused and broken, timeouts, 502 to 504. */
export class ErrorAccount {
  #windowStart = Number.NEGATIVE_INFINITY;
  #errors = 0;
  #answers = 0;
  #previousErrors = 0;
  #previousAnswers = 0;
  #inRow = 0;

  /** At least 8 errors, and no answer between them. */
  get areInRow(): boolean {
    return this.#inRow >= ERRORS;
  }

  note(now: Millis, failed: boolean): void {
    this.#roll(now);
    this.#inRow = failed ? this.#inRow + 1 : 0;
    this.#answers += 1;
    if (failed) this.#errors += 1;
  }

  /** At least 8 errors, and at least half of all answers, in the last one to two windows of a second. */
  isAlarming(now: Millis): boolean {
    this.#roll(now);
    const errors = this.#errors + this.#previousErrors;
    const answers = this.#answers + this.#previousAnswers;
    return errors >= ERRORS && errors >= ERROR_SHARE * answers;
  }

  clear(): void {
    this.#inRow = 0;
    this.#windowStart = Number.NEGATIVE_INFINITY;
    this.#roll(0);
  }

  #roll(now: Millis): void {
    const width = ERROR_SPAN / 2;
    if (now < this.#windowStart + width) return;
    const isNext = now < this.#windowStart + 2 * width;
    this.#previousErrors = isNext ? this.#errors : 0;
    this.#previousAnswers = isNext ? this.#answers : 0;
    this.#errors = 0;
    this.#answers = 0;
    this.#windowStart = isNext ? this.#windowStart + width : now;
  }
}
