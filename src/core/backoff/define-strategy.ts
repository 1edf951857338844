import type { BackOff, BackOffStep, Millis, Random } from '../exchange/attempt-outcome.ts';
import { type BackOffOptions, type Chosen, chooseOptions, type OptionName } from './back-off-options.ts';

/** What to expect of one delay: `min` ≤ delay ≤ `max`, where `max` may be approached and never reached. */
export interface Band {
  readonly min: Millis;
  /** The expectation over chance, and over the chances before where the strategy has a memory. */
  readonly mean: Millis;
  readonly max: Millis;
}

/** A backoff that can say beforehand what it will do. */
export interface BackOffStrategy extends BackOff {
  /** The options in effect, defaults filled in; those it does not read are absent. */
  readonly options: BackOffOptions;
  /** The retries it makes before it gives up; `Infinity` where it never does. */
  readonly retries: number;
  /** What to expect before retry `n` (from 0); undefined exactly where `next` is: when it has given up. */
  band(n: number): Band | undefined;
  /**
   * Within what the first `count` delays add up, where they depend on each other so that not all can be shortest, or
   * longest, at once. Undefined elsewhere: the ends of their bands add up.
   */
  sumRange(count: number): Pick<Band, 'min' | 'max'> | undefined;
}

/** The delays of a strategy that has not given up. Defined for every whole n from 0 to 2³¹. */
export interface Delays {
  next(n: number, memory: number, random: Random): BackOffStep;
  band(n: number): Band;
  /** As that of a strategy; absent where ends add up. */
  readonly sumRange?: (count: number) => Pick<Band, 'min' | 'max'>;
}

/** An entry of the registry. */
export interface StrategyDefinition {
  /** One line for a listing. */
  readonly summary: string;
  /** The delay before retry n (from 0), u being uniform on [0, 1). */
  readonly formula: string;
  /** E[delay] in closed form, where chance plays a part and there is one. */
  readonly expectation: string | undefined;
  /** Where it was published. */
  readonly source: string;
  /** The options it reads, each with the value it takes when not told. */
  readonly defaults: BackOffOptions;
  /** @throws BackOffOptionError naming an impossible option. */
  make(name: string, given: BackOffOptions): BackOffStrategy;
}

interface Draft<K extends OptionName> {
  readonly summary: string;
  readonly formula: string;
  readonly expectation?: string;
  readonly source: string;
  readonly defaults: Chosen<K>;
  /** Defaults that follow from another option. */
  readonly derive?: (given: BackOffOptions) => Partial<Chosen<K>>;
  /** Retries before it gives up; never where absent. @throws BackOffOptionError */
  readonly retries?: (options: Chosen<K>) => number;
  readonly delays: (options: Chosen<K>) => Delays;
}

/** Makes a registry entry of a formula: its options are checked and completed, and it gives up where it says it does. */
export function defineStrategy<K extends OptionName>(draft: Draft<K>): StrategyDefinition {
  const { summary, formula, expectation, source, defaults, derive } = draft;
  return {
    summary,
    formula,
    expectation,
    source,
    defaults,
    make(name, given) {
      const options = chooseOptions<K>({ ...defaults, ...derive?.(given) }, given);
      const retries = draft.retries?.(options) ?? Infinity;
      const delays = draft.delays(options);
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
