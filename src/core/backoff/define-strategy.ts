import type { BackOff, BackOffStep } from './back-off.ts';
import type { Millis, Random } from '../scalars.ts';
import { type BackOffOptions, type ResolvedOptions, resolveOptions, type OptionName } from './back-off-options.ts';

/** The distribution of one delay: `min` ≤ delay ≤ `max`. A delay may approach `max` without reaching it. */
export interface Band {
  readonly min: Millis;
  /** The expectation over the random draw, and over earlier draws if the strategy has a memory. */
  readonly mean: Millis;
  readonly max: Millis;
}

/** A backoff whose delay distributions are known in advance. */
export interface BackOffStrategy extends BackOff {
  /** The options in effect, defaults included; options that the strategy does not read are absent. */
  readonly options: BackOffOptions;
  /** Retries before the strategy gives up; `Infinity` if it never does. */
  readonly retries: number;
  /** The distribution of the delay before retry `n` (from 0); undefined if the strategy has given up, as `next` is. */
  band(n: number): Band | undefined;
  /**
   * The range of the sum of the first `count` delays, if they depend on each other so that not all can be shortest, or
   * longest, at once. Otherwise undefined: the ends of their bands add up.
   */
  sumRange(count: number): Pick<Band, 'min' | 'max'> | undefined;
}

/** The delays of a strategy that has not given up. Defined for every whole n from 0 to 2³¹. */
export interface DelaySequence {
  next(n: number, memory: number, random: Random): BackOffStep;
  band(n: number): Band;
  /** As in `BackOffStrategy`; absent if the ends add up. */
  readonly sumRange?: (count: number) => Pick<Band, 'min' | 'max'>;
}

/** An entry of the registry. */
export interface StrategyDefinition {
  /** One line for a listing. */
  readonly summary: string;
  /** The delay before retry n (from 0), u being uniform on [0, 1). */
  readonly formula: string;
  /** E[delay] in closed form, if the delay is random and a closed form exists. */
  readonly expectation: string | undefined;
  /** Where it was published. */
  readonly source: string;
  /** The options that the strategy reads, with their defaults. */
  readonly defaults: BackOffOptions;
  /** @throws BackOffOptionError naming an impossible option. */
  make(name: string, given: BackOffOptions): BackOffStrategy;
}

interface StrategyFormula<K extends OptionName> {
  readonly summary: string;
  readonly formula: string;
  readonly expectation?: string;
  readonly source: string;
  readonly defaults: ResolvedOptions<K>;
  /** Defaults that depend on other options. */
  readonly derive?: (given: BackOffOptions) => Partial<ResolvedOptions<K>>;
  /** Retries before the strategy gives up; absent: it never does. @throws BackOffOptionError */
  readonly retries?: (options: ResolvedOptions<K>) => number;
  readonly delays: (options: ResolvedOptions<K>) => DelaySequence;
}

/** Makes a registry entry from a formula: checks and completes its options, and ends its delays after `retries`. */
export function defineStrategy<K extends OptionName>(strategy: StrategyFormula<K>): StrategyDefinition {
  const { summary, formula, expectation, source, defaults, derive } = strategy;
  return {
    summary,
    formula,
    expectation,
    source,
    defaults,
    make(name, given) {
      const options = resolveOptions<K>({ ...defaults, ...derive?.(given) }, given);
      const retries = strategy.retries?.(options) ?? Infinity;
      const delays = strategy.delays(options);
      return Object.freeze({
        name,
        options,
        retries,
        next: (n: number, memory: number, random: Random) => (n < retries ? delays.next(n, memory, random) : undefined),
        band: (n: number) => (n < retries ? delays.band(n) : undefined),
        sumRange: (count: number) => delays.sumRange?.(Math.min(count, retries)),
      });
    },
  };
}
