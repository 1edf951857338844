import type { Source } from './request-attributes.ts';
import { isPath, ofAddress, partsOf, SOURCE_NUMBERS } from './request-attributes.ts';
import type { Millis } from '../../exchange/attempt-outcome.ts';
import { uncutOf } from '../decrease.ts';
import type { CutState, RateState } from '../rate-state.ts';

/** Rejections that are remembered, and requests that passed right after each. */
const REJECTIONS = 16;
export const PASSES_AFTER_REJECTION = 3;
const EACH = SOURCE_NUMBERS + 1;
const MOST = REJECTIONS * (1 + PASSES_AFTER_REJECTION);
/** Fewer rejections show no part. */
const LEAST = 4;
/** Of the log-likelihood ratio: beyond it lies one case in 50,000 by chance. */
const SIGNIFICANT = 9;
/** A path that more of what passes is for is what the limit of all is about. */
const MOST_OF_A_PATH = 0.5;
const FORGOTTEN_AFTER: Millis = 60_000;

/** A part of all requests that is limited by itself. */
export interface RejectedPart {
  readonly scope: Source;
  /** How the limit of all stood before that part was rejected. */
  readonly before: CutState;
}

/**
 * Whether rejections are about a part of all requests alone: those from one address, or for one path, are rejected so much more often
 * than the others that a limit of all cannot be the reason. It compares the last rejections, and a few requests that passed right after
 * each, by the log-likelihood ratio G/2 (T. Dunning, "Accurate Methods for the Statistics of Surprise and Coincidence",
 * Computational Linguistics 19 (1), 1993).
 */
export class RejectedParts {
  /** Of each request 1 where it was rejected, and its source; the oldest first. */
  #numbers: number[] = [];
  /** How the limit stood before each rejection. */
  #before: CutState[] = [];
  #passesLeft = 0;
  #lastAt: Millis = Number.NEGATIVE_INFINITY;

  /** Where the next request comes from that passes is worth knowing. */
  get areOpen(): boolean {
    return this.#passesLeft > 0;
  }

  passed(source: Source | undefined): void {
    if (this.#passesLeft === 0 || source === undefined) return;
    this.#passesLeft -= 1;
    this.#add(0, source);
  }

  /** Before the limit is cut by it. @returns the part that it is about; undefined where it is about all */
  rejected(state: RateState, source: Source | undefined, now: Millis): RejectedPart | undefined {
    if (now - this.#lastAt > FORGOTTEN_AFTER) this.#forget();
    this.#lastAt = now;
    // Only what passes between rejections tells parts apart, so the next ones of a row bring nothing new.
    const hasPassed = this.#passesLeft < PASSES_AFTER_REJECTION;
    this.#passesLeft = PASSES_AFTER_REJECTION;
    this.#before.push(uncutOf(state));
    if (this.#before.length > REJECTIONS) this.#before.shift();
    this.#add(1, source ?? []);
    return source === undefined || !hasPassed ? undefined : this.#find(source, state);
  }

  #find(source: Source, state: RateState): RejectedPart | undefined {
    let scope: Source | undefined;
    let most = SIGNIFICANT;
    for (const part of partsOf(source)) {
      const ratio = this.#ratioOf(part);
      if (ratio > most) {
        most = ratio;
        scope = part;
      }
    }
    if (scope === undefined) return undefined;
    const own = ofAddress(scope, source); // where all of them come from there, it is not about others
    if (this.#count(1, own) === this.#count(1, scope)) scope = own;
    return { scope, before: this.#beforeAll(scope, state) };
  }

  /** How much likelier it all is if this part has a limit of its own, as a logarithm; 0 where nothing speaks for it. */
  #ratioOf(part: Source): number {
    const rejected = this.#count(1, part);
    if (rejected < LEAST) return 0;
    const passed = this.#count(0, part);
    const all = this.#numbers.length / EACH;
    const allRejected = this.#count(1, []);
    const inside = rejected + passed;
    const outside = all - inside;
    if (isPath(part) && passed > MOST_OF_A_PATH * (all - allRejected)) return 0;
    if (rejected * outside <= (allRejected - rejected) * inside) return 0;
    return likelihood(rejected, inside) + likelihood(allRejected - rejected, outside) - likelihood(allRejected, all);
  }

  /** Before the first of the rejections that are all about it: they were no reason to cut. */
  #beforeAll(part: Source, state: RateState): CutState {
    let before: CutState = uncutOf(state);
    let at = this.#numbers.length - EACH;
    for (let i = this.#before.length - 1; i >= 0; i -= 1) {
      while (at >= 0 && this.#numbers[at] !== 1) at -= EACH;
      if (at < 0 || !this.#isWithin(part, at)) break;
      before = this.#before[i] ?? before;
      at -= EACH;
    }
    return before;
  }

  /** @param kind 1: rejected, 0: passed @param part empty: all */
  #count(kind: number, part: Source): number {
    let count = 0;
    for (let at = 0; at < this.#numbers.length; at += EACH) {
      if (this.#numbers[at] === kind && this.#isWithin(part, at)) count += 1;
    }
    return count;
  }

  /** Whether the request that stands there is part of it. */
  #isWithin(part: Source, at: number): boolean {
    for (let i = 0; i < SOURCE_NUMBERS; i += 1) {
      const value = part[i] ?? 0;
      if (value !== 0 && value !== this.#numbers[at + 1 + i]) return false;
    }
    return true;
  }

  #add(kind: number, source: Source): void {
    if (this.#numbers.length >= EACH * MOST) this.#numbers = this.#numbers.slice(EACH);
    this.#numbers.push(kind);
    for (let i = 0; i < SOURCE_NUMBERS; i += 1) this.#numbers.push(source[i] ?? 0);
  }

  #forget(): void {
    this.#numbers = [];
    this.#before = [];
  }
}

/** The logarithm of how likely `k` of `n` are where each is with probability k/n. */
function likelihood(k: number, n: number): number {
  const part = (count: number): number => (count === 0 ? 0 : count * Math.log(count / n));
  return part(k) + part(n - k);
}
