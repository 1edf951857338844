import type { RequestAttributes } from './request-attributes.ts';
import {
  ANY_REQUEST,
  definingAttributes,
  isPathOnly,
  listCandidateParts,
  narrowToAddress,
} from './request-attributes.ts';
import type { Millis } from '../../scalars.ts';
import { saveRevertibleState } from '../decrease.ts';
import { FailingSenders } from './failing-senders.ts';
import type { Tally } from './request-records.ts';
import { RequestRecords } from './request-records.ts';
import type { RevertibleRateState, RateState } from '../rate-state.ts';

/** The number of states kept, one for each rejection, and of accepted requests sampled after each rejection. */
const REJECTIONS = 32;
export const PASSES_AFTER_REJECTION = 3;
/** The result in a record. An ignored rejection has cut nothing. */
const PASSED = 0;
const REJECTED = 1;
const IGNORED = 2;
const MAX_RECORDS = 6 * REJECTIONS;
/** The least number of rejections of a part. */
const MIN_REJECTIONS = 4;
/** One case in 50,000 exceeds this by chance. */
const MIN_LOG_LIKELIHOOD_RATIO = 9;
/** A path with a larger share of the accepted requests is not a part: the limit of all requests is mostly about it. */
const MAX_PASSED_SHARE_OF_PATH = 0.5;
const SAMPLES_EXPIRY: Millis = 60_000;

/** A part of all requests that is rejected, or fails, while others are accepted. */
export interface RejectedPart {
  readonly scope: RequestAttributes;
  /** The state of the limit of all requests before that part was rejected or failed. */
  readonly stateBefore: RevertibleRateState;
}

/**
 * Detects rejections that concern only a part of all requests: those from one address, or for one path, are rejected so
 * much more often than others that a limit of all requests cannot be the reason. Compares the last rejections, and a few
 * requests accepted right after each, by the log-likelihood ratio G/2 (T. Dunning, "Accurate Methods for the Statistics of
 * Surprise and Coincidence", Computational Linguistics 19 (1), 1993).
 */
export class RejectedPartDetector {
  readonly senders = new FailingSenders(SAMPLES_EXPIRY);
  readonly #records = new RequestRecords(MAX_RECORDS);
  /** The state of the limit before each rejection that was not ignored. */
  #statesBefore: RevertibleRateState[] = [];
  #passesLeft = 0;
  #lastRejectedAt: Millis = Number.NEGATIVE_INFINITY;

  /** Whether the attributes of the next accepted request are needed. */
  get isSampling(): boolean {
    return this.#passesLeft > 0;
  }

  onAccepted(attributes: RequestAttributes | undefined): void {
    if (this.#passesLeft === 0 || attributes === undefined) return;
    this.#passesLeft -= 1;
    this.#records.add(PASSED, attributes);
  }

  /**
   * Call it before the rejection cuts the rate.
   * @param isIgnored whether it cuts nothing: see `FailingSenders`
   * @returns the affected part; undefined if all requests are affected
   */
  onRejected(
    state: RateState,
    attributes: RequestAttributes | undefined,
    now: Millis,
    isIgnored = false,
  ): RejectedPart | undefined {
    this.#beginSample(now);
    if (!isIgnored) {
      this.#statesBefore.push(saveRevertibleState(state));
      if (this.#statesBefore.length > REJECTIONS) this.#statesBefore.shift();
    }
    this.#records.add(isIgnored ? IGNORED : REJECTED, attributes ?? []);
    return attributes === undefined ? undefined : this.#find(attributes, state);
  }

  /** A rejection that cuts nothing, and shows only that requests with these attributes are rejected too. */
  onIgnored(attributes: RequestAttributes, now: Millis): void {
    this.#beginSample(now);
    this.#records.add(IGNORED, attributes);
  }

  #beginSample(now: Millis): void {
    if (now - this.#lastRejectedAt > SAMPLES_EXPIRY) this.#forget();
    this.#lastRejectedAt = now;
    this.#passesLeft = PASSES_AFTER_REJECTION;
  }

  #find(attributes: RequestAttributes, state: RateState): RejectedPart | undefined {
    const all = this.#records.tally(ANY_REQUEST, PASSED);
    let found: { readonly part: RequestAttributes; readonly tally: Tally } | undefined;
    let highestRatio = MIN_LOG_LIKELIHOOD_RATIO;
    for (const part of listCandidateParts(attributes)) {
      const tally = this.#records.tally(part, PASSED);
      const ratio = this.#ratioOf(part, tally, all);
      if (ratio <= highestRatio) continue;
      highestRatio = ratio;
      found = { part, tally };
    }
    if (found === undefined) return undefined;
    // If all come from one address, the part is narrower.
    const own = narrowToAddress(found.part, attributes);
    const scope = rejectedOf(this.#records.tally(own, PASSED)) === rejectedOf(found.tally) ? own : found.part;
    return { scope, stateBefore: this.#stateBefore(scope, state) };
  }

  /**
   * The log-likelihood ratio for the part having a limit of its own; 0 if there is no evidence.
   * @param own of this part @param all of all requests
   */
  #ratioOf(part: RequestAttributes, own: Tally, all: Tally): number {
    const rejected = rejectedOf(own);
    if (rejected < MIN_REJECTIONS) return 0;
    if (isPathOnly(part) && own.withResult > MAX_PASSED_SHARE_OF_PATH * all.withResult) return 0;
    const others = rejectedOf(all) - rejected;
    const allRejected = rejectedOf(all) - (others < MIN_REJECTIONS ? 0 : this.#countRejectedAlike(part));
    const total = allRejected + all.withResult;
    const outside = total - own.all;
    if (rejected * outside <= (allRejected - rejected) * own.all) return 0;
    return likelihood(rejected, own.all) + likelihood(allRejected - rejected, outside) - likelihood(allRejected, total);
  }

  /**
   * The rejections of other parts that are defined by the same attributes and of which nothing passes: several addresses over limits
   * of their own, for example. What they add to the rejections hides that each of them is rejected alone.
   */
  #countRejectedAlike(scope: RequestAttributes): number {
    const indexes = definingAttributes(scope);
    const own = indexes.reduce((sum, i) => sum + (scope[i] ?? 0), 0);
    let count = 0;
    for (const [part, rejected] of this.#countRejectedParts(indexes)) {
      if (part !== own && rejected >= MIN_REJECTIONS) count += rejected;
    }
    return count;
  }

  /** The number of rejections of each part that these attributes define, by `RequestRecords.partAt`; -Infinity if a request has passed. */
  #countRejectedParts(indexes: readonly number[]): Map<number, number> {
    const rejected = new Map<number, number>();
    for (let i = 0; i < this.#records.count; i += 1) {
      const part = this.#records.partAt(i, indexes);
      if (part === undefined) continue;
      const isPassed = this.#records.resultAt(i) === PASSED;
      rejected.set(part, isPassed ? Number.NEGATIVE_INFINITY : (rejected.get(part) ?? 0) + 1);
    }
    return rejected;
  }

  /** The state before the first of the latest rejections that all concern this part, or others of which nothing passes. */
  #stateBefore(scope: RequestAttributes, state: RateState): RevertibleRateState {
    const indexes = definingAttributes(scope);
    const own = indexes.reduce((sum, i) => sum + (scope[i] ?? 0), 0);
    const rejected = this.#countRejectedParts(indexes);
    let before: RevertibleRateState = saveRevertibleState(state);
    let left = this.#statesBefore.length;
    for (let i = this.#records.count - 1; i >= 0 && left > 0; i -= 1) {
      if (this.#records.resultAt(i) !== REJECTED) continue;
      const part = this.#records.partAt(i, indexes);
      if (part !== own && (part === undefined || (rejected.get(part) ?? 0) < 0)) break;
      left -= 1;
      before = this.#statesBefore[left] ?? before;
    }
    return before;
  }

  #forget(): void {
    this.#records.clear();
    this.#statesBefore = [];
  }
}

function rejectedOf({ all, withResult: passed }: Tally): number {
  return all - passed;
}

/** The log-likelihood of k of n events at probability k/n. */
function likelihood(k: number, n: number): number {
  const part = (count: number): number => (count === 0 ? 0 : count * Math.log(count / n));
  return part(k) + part(n - k);
}
