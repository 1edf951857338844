import type { Millis, Random } from '../scalars.ts';

/** A sequence of retry delays. Pure: randomness and memory are arguments. */
export interface BackOff {
  readonly name: string;
  /**
   * The delay before retry `n` (from 0). `memory` is what the previous step returned, 0 at first.
   * @returns undefined when the strategy gives up.
   */
  next(n: number, memory: number, random: Random): BackOffStep | undefined;
}

export interface BackOffStep {
  /** Finite, ≥ 0. */
  readonly delay: Millis;
  readonly memory: number;
}
