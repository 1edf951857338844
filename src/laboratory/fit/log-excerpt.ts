import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Answer } from './logged-request.ts';

/** What is kept of an answer. */
export const PASSED = 0;
export const REFUSED = 1;
/** It has passed a limit, most likely: an upstream that is down says nothing of its limit. */
export const FAILED = 2;
const UNCLEAR = 3;

/** Attempts in a row. */
export interface Stretch {
  readonly at: Float64Array;
  readonly what: Uint8Array;
  readonly count: number;
  /** Follows the one before it without a gap, or begins the log. */
  readonly isJoined: boolean;
}

interface Kept {
  readonly at: Float64Array;
  readonly what: Uint8Array;
  readonly index: number;
  count: number;
  refusals: number;
}

const LENGTH = 32_768;
const MOST = 8;

/**
 * Attempts of a log, a quarter of a million at most: all of them, or stretches in which its limit was felt, evenly over the log.
 */
export class Excerpt {
  readonly #keepsQuiet: boolean;
  #kept: Kept[] = [];
  /** Of those worth keeping, one in so many is kept. */
  #stride = 1;
  #worthy = 0;
  #current: Kept = begin(0);

  /** @param keepsQuiet whether stretches without a refusal are kept too: they tell how large a burst may be, where a rate is known */
  constructor(keepsQuiet: boolean) {
    this.#keepsQuiet = keepsQuiet;
  }

  /** @param at never goes back */
  add(answer: Answer, at: Millis): void {
    if (answer === 'unheard') return;
    const current = this.#current;
    current.at[current.count] = at;
    current.what[current.count] = CODES[answer];
    current.count += 1;
    if (answer === 'refused' || answer === 'unclear') current.refusals += 1;
    if (current.count < LENGTH) return;
    if (current.refusals > 0 || this.#keepsQuiet) this.#keep(current);
    this.#current = begin(current.index + 1);
  }

  /** @param unclear what an attempt was that was sent again */
  stretches(unclear: 'refused' | 'failed'): readonly Stretch[] {
    const code = CODES[unclear];
    const all = this.#current.count === 0 ? this.#kept : [...this.#kept, this.#current];
    return all.map(({ at, what, count, index }, i) => ({
      at,
      what: what.map((each) => (each === UNCLEAR ? code : each)),
      count,
      isJoined: index === (all[i - 1]?.index ?? -1) + 1,
    }));
  }

  #keep(stretch: Kept): void {
    this.#worthy += 1;
    if ((this.#worthy - 1) % this.#stride !== 0) return;
    this.#kept.push(stretch);
    if (this.#kept.length < MOST) return;
    this.#kept = this.#kept.filter((_, i) => i % 2 === 0);
    this.#stride *= 2;
  }
}

const CODES: Readonly<Record<Exclude<Answer, 'unheard'>, number>> = {
  passed: PASSED,
  refused: REFUSED,
  failed: FAILED,
  unclear: UNCLEAR,
};

function begin(index: number): Kept {
  return { at: new Float64Array(LENGTH), what: new Uint8Array(LENGTH), index, count: 0, refusals: 0 };
}
