import type { Source } from './request-attributes.ts';
import { ANYWHERE, ofAddress, partsOf } from './request-attributes.ts';
import type { Millis } from '../../exchange/attempt-outcome.ts';
import { Evidence } from './majority-vote.ts';
import { RecentAnswers } from './recent-results.ts';

const ERRORS = 8;
const ERROR_SPAN: Millis = 2000;
const ERROR_SHARE = 0.5;
/** Of eight, five. */
const IN_COMMON = 0.2;
/** Of requests with something in common: up to so many that pass for each that fails are chance. */
const PASSES_BY_CHANCE = 0.25;
/** So many failures show that a part fails of which nothing passes. */
const FAILURES_OF_A_PART = 3;

/** A sliding count of failures: connections refused and broken, timeouts, 502 to 504. */
export class ErrorAccount {
  #windowStart = Number.NEGATIVE_INFINITY;
  #errors = 0;
  #answers = 0;
  #previousErrors = 0;
  #previousAnswers = 0;
  #inRow = 0;
  /** Made at the first failure, as the next: there may be an account for each client. */
  #evidence: Evidence | undefined;
  #recent: RecentAnswers | undefined;
  /** Where the last failure came from; empty where that is not known. */
  #last: number[] = [];

  /** At least 8 errors, and nothing accepted between them. */
  get areInRow(): boolean {
    return this.#inRow >= ERRORS;
  }

  /** Something has failed lately: of what passes it is worth knowing where it comes from. */
  get isTroubled(): boolean {
    return this.#errors + this.#previousErrors > 0;
  }

  /**
   * What the failures have in common. Where many requests that share it pass, it is the widest part of the last failure's source of
   * which nothing passes, if there is one: a block that covers two unrelated failures would also stop what works.
   */
  get scope(): Source {
    const common = this.#evidence?.scope ?? ANYWHERE;
    const recent = this.#recent;
    if (recent === undefined || this.#last.length === 0) return common;
    if (recent.count(false, common) <= PASSES_BY_CHANCE * recent.count(true, common)) return common;
    for (const part of partsOf(this.#last)) {
      if (recent.count(false, part) === 0 && recent.count(true, part) >= FAILURES_OF_A_PART) {
        const own = ofAddress(part, this.#last); // where all of them come from there, it is not about others
        return recent.count(true, own) === recent.count(true, part) ? own : part;
      }
    }
    return common;
  }

  note(now: Millis, failed: boolean, source?: Source): void {
    this.#roll(now);
    this.#inRow = failed ? this.#inRow + 1 : 0;
    this.#answers += 1;
    if (source !== undefined && (failed || this.isTroubled)) {
      this.#recent ??= new RecentAnswers();
      this.#recent.note(failed, source);
    }
    if (!failed) return;
    this.#last = [...(source ?? [])];
    this.#errors += 1;
    this.#evidence ??= new Evidence(IN_COMMON);
    this.#evidence.note(source);
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
    if (isNext) this.#evidence?.fade();
    else {
      this.#evidence?.clear();
      this.#recent?.clear();
    }
    this.#previousErrors = isNext ? this.#errors : 0;
    this.#previousAnswers = isNext ? this.#answers : 0;
    this.#errors = 0;
    this.#answers = 0;
    this.#windowStart = isNext ? this.#windowStart + width : now;
  }
}
