import type { RequestAttributes } from './request-attributes.ts';
import { ANY_REQUEST, isPathOnly, narrowToAddress, listCandidateParts } from './request-attributes.ts';
import type { Millis } from '../../scalars.ts';
import { MajorityVote } from './majority-vote.ts';
import { RequestRecords } from './request-records.ts';

const ERRORS = 8;
const ERROR_SPAN: Millis = 2000;
const ERROR_SHARE = 0.5;
/** Five of eight. */
const COMMON_MARGIN = 0.2;
/** Up to this many accepted requests per failed one, among those with something in common, are chance. */
const PASSES_BY_CHANCE = 0.25;
/** The number of results that are kept. */
const RECENT_RESULTS = 64;
const ACCEPTED = 0;
const FAILED = 1;
const FAILED_ALONE = 2;
/** This many failures show that a part fails, if none of its requests is accepted. */
const FAILURES_OF_A_PART = 3;

/** A sliding count of failures: refused and broken connections, timeouts, 502 to 504. */
export class ErrorWindow {
  #windowStart = Number.NEGATIVE_INFINITY;
  #errors = 0;
  #answers = 0;
  #previousErrors = 0;
  #previousAnswers = 0;
  /** Failures of senders of which nothing is accepted, while requests of others are. */
  #errorsAlone = 0;
  #previousErrorsAlone = 0;
  #consecutiveErrors = 0;
  /** Created at the first failure, as the next one: there may be a window for each client. */
  #common: MajorityVote | undefined;
  #recentResults: RequestRecords | undefined;
  /** The attributes of the last failed request; empty if unknown. */
  #lastFailed: number[] = [];

  /** Whether the last 8 or more results were errors. */
  get areConsecutive(): boolean {
    return this.#consecutiveErrors >= ERRORS;
  }

  /** Whether there were recent failures, so that the attributes of accepted requests are needed. */
  get hasRecentErrors(): boolean {
    return this.#errors + this.#previousErrors + this.#errorsAlone + this.#previousErrorsAlone > 0;
  }

  /**
   * The attributes that the failed requests share. If many requests with these attributes pass, it is the widest part of the
   * last failure in which nothing passes, if there is one: a block of two unrelated failures would also stop requests that pass.
   */
  get scope(): RequestAttributes {
    const common = this.#common?.common ?? ANY_REQUEST;
    if (this.#lastFailed.length === 0) return common;
    if (this.#countRecent(ACCEPTED, common) <= PASSES_BY_CHANCE * this.#countRecent(FAILED, common)) return common;
    for (const part of listCandidateParts(this.#lastFailed)) {
      const failed = this.#countRecent(FAILED, part);
      if (this.#countRecent(ACCEPTED, part) === 0 && failed >= FAILURES_OF_A_PART) {
        const own = narrowToAddress(part, this.#lastFailed); // if all come from one address, the part is narrower
        return this.#countRecent(FAILED, own) === failed ? own : part;
      }
    }
    return common;
  }

  onAnswer(now: Millis, failed: boolean, attributes?: RequestAttributes): void {
    this.#roll(now);
    this.#consecutiveErrors = failed ? this.#consecutiveErrors + 1 : 0;
    this.#answers += 1;
    if (attributes !== undefined && (failed || this.hasRecentErrors)) {
      this.#recentResults ??= new RequestRecords(RECENT_RESULTS);
      this.#recentResults.add(failed ? FAILED : ACCEPTED, attributes);
    }
    if (!failed) return;
    this.#lastFailed = [...(attributes ?? [])];
    this.#errors += 1;
    this.#common ??= new MajorityVote(COMMON_MARGIN);
    this.#common.add(attributes);
  }

  /** A failure of a sender of which nothing is accepted, while requests of others are: see `FailingSenders`. */
  onFailedAlone(now: Millis, attributes: RequestAttributes): void {
    this.#roll(now);
    this.#errorsAlone += 1;
    this.#recentResults ??= new RequestRecords(RECENT_RESULTS);
    this.#recentResults.add(FAILED_ALONE, attributes);
  }

  /**
   * Whether several addresses fail with a path, or paths that begin alike, for which nothing is accepted: then that path fails, and not
   * its senders.
   */
  isPathFailing(attributes: RequestAttributes): boolean {
    for (const part of listCandidateParts(attributes)) {
      if (!isPathOnly(part)) continue;
      const failed = this.#countFailedOnly(part);
      if (failed < FAILURES_OF_A_PART) continue;
      if (this.#countFailedOnly(narrowToAddress(part, attributes)) < failed) return true;
    }
    return false;
  }

  /** What the recent failures of a sender have in common; all of the sender after fewer than three. @param sender as a part */
  scopeOfSender(sender: number[]): number[] {
    return this.#recentResults?.commonWithout(ACCEPTED, sender, FAILURES_OF_A_PART) ?? sender;
  }

  /**
   * Whether there were at least 8 errors, and at least half of all results were, in the last one to two windows of 1 s. Failures of
   * senders that fail alone do not count.
   */
  exceedsThreshold(now: Millis): boolean {
    this.#roll(now);
    const errors = this.#errors + this.#previousErrors;
    const answers = this.#answers + this.#previousAnswers;
    return errors >= ERRORS && errors >= ERROR_SHARE * answers;
  }

  /** As `exceedsThreshold`, for the failures of the senders that fail alone. */
  exceedsThresholdAlone(now: Millis): boolean {
    this.#roll(now);
    const errors = this.#errorsAlone + this.#previousErrorsAlone;
    return errors >= ERRORS && errors >= ERROR_SHARE * (errors + this.#answers + this.#previousAnswers);
  }

  /** Restarts the counts. @param keepsResults whether what was accepted before is still a sign of what is accepted now */
  clear(keepsResults: boolean, now: Millis): void {
    this.#consecutiveErrors = 0;
    this.#common?.clear();
    if (!keepsResults) this.#recentResults?.clear();
    this.#forgetCounts();
    this.#shiftCounts(now);
  }

  /** The number of requests within a scope; 0 if one of them was accepted. */
  #countFailedOnly(scope: RequestAttributes): number {
    const tally = this.#recentResults?.tally(scope, ACCEPTED);
    return tally === undefined || tally.withResult > 0 ? 0 : tally.all;
  }

  #countRecent(result: number, scope: RequestAttributes): number {
    return this.#recentResults?.tally(scope, result).withResult ?? 0;
  }

  #roll(now: Millis): void {
    const width = ERROR_SPAN / 2;
    if (now < this.#windowStart + width) return;
    const isNext = now < this.#windowStart + 2 * width;
    if (isNext) this.#common?.halve();
    else {
      this.#common?.clear();
      this.#recentResults?.clear();
    }
    if (!isNext) this.#forgetCounts();
    this.#shiftCounts(isNext ? this.#windowStart + width : now);
  }

  #shiftCounts(windowStart: Millis): void {
    this.#previousErrors = this.#errors;
    this.#previousAnswers = this.#answers;
    this.#previousErrorsAlone = this.#errorsAlone;
    this.#forgetCounts();
    this.#windowStart = windowStart;
  }

  #forgetCounts(): void {
    this.#errors = 0;
    this.#answers = 0;
    this.#errorsAlone = 0;
  }
}
