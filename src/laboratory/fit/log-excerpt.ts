import type { Millis } from '../../core/scalars.ts';
import type { AttemptAnswer } from './logged-request.ts';

/** The kept part of an outcome. */
export const PASSED = 0;
export const REFUSED = 1;
/** Probably accepted by the limit; an upstream that is down reveals nothing about its limit. */
export const FAILED = 2;
const UNCLEAR = 3;

/** Attempts in a row. */
export interface LogSegment {
  readonly at: Float64Array;
  readonly outcomes: Uint8Array;
  /** The time that each took at the upstream, in ms; NaN if the log does not have it. */
  readonly took: Float64Array;
  readonly count: number;
  /** Whether it follows the previous stretch without a gap, or begins the log. */
  readonly isContiguous: boolean;
}

interface KeptSegment {
  readonly at: Float64Array;
  readonly outcomes: Uint8Array;
  readonly took: Float64Array;
  readonly index: number;
  count: number;
  refusals: number;
}

const SEGMENT_LENGTH = 32_768;
const MAX_SEGMENTS = 8;

/**
 * Attempts of a log, at most a quarter of a million: all of them, or stretches with refusals, evenly over the log.
 */
export class LogExcerpt {
  readonly #keepsUnrefused: boolean;
  #kept: KeptSegment[] = [];
  /** One in this many useful stretches is kept. */
  #stride = 1;
  #offered = 0;
  #current: KeptSegment = emptySegment(0);

  /** @param keepsUnrefused keeps stretches without a refusal too: with a known rate they bound the burst */
  constructor(keepsUnrefused: boolean) {
    this.#keepsUnrefused = keepsUnrefused;
  }

  /**
   * @param at must not decrease
   * @param took NaN if unknown
   */
  add(answer: AttemptAnswer, at: Millis, took: Millis = Number.NaN): void {
    if (answer === 'unheard') return;
    const current = this.#current;
    current.at[current.count] = at;
    current.outcomes[current.count] = OUTCOME_CODES[answer];
    current.took[current.count] = took;
    current.count += 1;
    if (answer === 'refused' || answer === 'unclear') current.refusals += 1;
    if (current.count < SEGMENT_LENGTH) return;
    if (current.refusals > 0 || this.#keepsUnrefused) this.#keep(current);
    this.#current = emptySegment(current.index + 1);
  }

  /** @param unclear the outcome assumed for attempts that were retried */
  segments(unclear: 'refused' | 'failed'): readonly LogSegment[] {
    const code = OUTCOME_CODES[unclear];
    const all = this.#current.count === 0 ? this.#kept : [...this.#kept, this.#current];
    return all.map(({ at, outcomes, took, count, index }, i) => ({
      at,
      took,
      outcomes: outcomes.map((each) => (each === UNCLEAR ? code : each)),
      count,
      isContiguous: index === (all[i - 1]?.index ?? -1) + 1,
    }));
  }

  #keep(stretch: KeptSegment): void {
    this.#offered += 1;
    if ((this.#offered - 1) % this.#stride !== 0) return;
    this.#kept.push(stretch);
    if (this.#kept.length < MAX_SEGMENTS) return;
    this.#kept = this.#kept.filter((_, i) => i % 2 === 0);
    this.#stride *= 2;
  }
}

const OUTCOME_CODES: Readonly<Record<Exclude<AttemptAnswer, 'unheard'>, number>> = {
  passed: PASSED,
  refused: REFUSED,
  failed: FAILED,
  unclear: UNCLEAR,
};

function emptySegment(index: number): KeptSegment {
  return {
    at: new Float64Array(SEGMENT_LENGTH),
    outcomes: new Uint8Array(SEGMENT_LENGTH),
    took: new Float64Array(SEGMENT_LENGTH),
    index,
    count: 0,
    refusals: 0,
  };
}
