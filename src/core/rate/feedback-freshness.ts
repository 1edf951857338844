import type { Millis } from '../exchange/attempt-outcome.ts';
import type { RateState } from './rate-state.ts';

/** What was learned is worth nothing when no accepted answer was told of for so long, while requests went on. */
const TOLD_FOR: Millis = 600_000;

/**
 * Which accepted answers were told of, as far as growth goes by them. Who sends by us hears of all; what others send, once it
 * was let pass, is known by what they report.
 */
export class Told {
  /** u when one was told of last; −Infinity when never. */
  #grown = Number.NEGATIVE_INFINITY;
  /** For how long it has gone on since, where it might have grown. */
  #untoldFor: Millis = 0;

  accepted(grown: Millis): void {
    this.#grown = grown;
    this.#untoldFor = 0;
  }

  /** Growth begins anew. */
  cut(): void {
    this.#grown = 0;
  }

  /** Whether nothing was told of for so long that what was learned is to be forgotten. Time passes: to be asked once a step. */
  isForgotten(elapsed: Millis): boolean {
    this.#untoldFor += elapsed;
    if (this.#untoldFor <= TOLD_FOR || this.#grown === Number.NEGATIVE_INFINITY) return false;
    this.#grown = Number.NEGATIVE_INFINITY;
    return true;
  }

  /** Whether growth beyond the ceiling would go by nothing: none was told of since half of K. */
  isSilent({ grown, growFor }: RateState): boolean {
    return grown >= growFor && grown - this.#grown > growFor / 2;
  }
}
