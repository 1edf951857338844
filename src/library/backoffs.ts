/** The registry of backoff strategies, with the option names of the configuration. */
import type { BackOffOptions, BackOffStrategy, StrategyDefinition, StrategyName } from '../core/backoff/strategies.ts';
import { isStrategyName, makeBackOff, strategies, strategyNames } from '../core/backoff/strategies.ts';
import type { BackOff } from '../core/backoff/back-off.ts';
import type { Millis, Random } from '../core/scalars.ts';
import { suggest } from '../config/values/suggest.ts';
import { rejectUnknownOptions } from './unknown-options.ts';
import type { Duration } from './duration.ts';
import { parseMillis } from './duration.ts';

/** Options of a strategy. An option that is absent has the strategy's default; an option that it does not use has no effect. */
export interface BackoffOptions {
  /** The first delay, or the unit from which the delays grow. */
  readonly baseInterval?: Duration | undefined;
  /** Factor from each delay to the next, ≥ 1. */
  readonly multiplier?: number | undefined;
  /** Maximum delay, at least `baseInterval`. */
  readonly maxInterval?: Duration | undefined;
  /** Maximum deviation of a delay from its middle, as a share of the middle: 0 to 1. */
  readonly jitter?: number | undefined;
  /** Maximum random time added to a delay. */
  readonly jitterInterval?: Duration | undefined;
  /** Exponent of the polynomial, ≥ 0. */
  readonly exponent?: number | undefined;
  /** Number of slots to choose from, for each retry; the last entry repeats. Whole numbers ≥ 1. */
  readonly table?: readonly number[] | undefined;
  /** Length of a slot. */
  readonly slot?: Duration | undefined;
}

/** A strategy by name, with options that override its defaults. */
export interface BackoffSpec extends BackoffOptions {
  readonly strategy: StrategyName;
}

/** A strategy of the registry. */
export interface Backoff extends Pick<StrategyDefinition, 'summary' | 'formula' | 'source' | 'defaults'> {
  readonly name: StrategyName;
  /**
   * Makes the strategy with these options. It has no state, so one instance serves any number of callers.
   * @throws RangeError if the value of an option is out of range; TypeError for an unknown option or an invalid duration
   */
  make(options?: BackoffOptions): BackOffStrategy;
  /**
   * Generates its delays in milliseconds. Ends if the strategy gives up; most strategies never do.
   * @param random uniform on [0, 1); `Math.random` by default
   * @throws as `make`
   */
  delays(options?: BackoffOptions, random?: Random): Generator<Millis, void, void>;
}

/** All strategies by name, the simplest first. */
export const backoffs: Readonly<Record<StrategyName, Backoff>> = Object.freeze(
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every name has an entry: they are the names of the type
  Object.fromEntries(strategyNames.map((name) => [name, toBackoff(name)])) as Record<StrategyName, Backoff>,
);

/**
 * Resolves the `backOff` option of `retry`.
 * @param given a name, a name with options, or a ready strategy
 * @throws RangeError or TypeError with the problem
 */
export function resolveBackoff(given: StrategyName | BackoffSpec | BackOff): BackOff {
  if (typeof given === 'string') return makeStrategy(given, {});
  if (typeof given !== 'object' || given === null) {
    throw new TypeError(`backOff must be the name of a strategy, {strategy, …} or a strategy, not ${String(given)}`);
  }
  if ('next' in given) return given;
  const { strategy, ...options } = given;
  return makeStrategy(strategy, options);
}

function makeStrategy(strategy: StrategyName, options: BackoffOptions): BackOffStrategy {
  if (!isStrategyName(strategy)) {
    const near = suggest(String(strategy), strategyNames);
    const hint = near === undefined ? `: there are ${strategyNames.join(', ')}` : ` (did you mean ${near}?)`;
    throw new RangeError(`no backoff strategy is called '${String(strategy)}'${hint}`);
  }
  rejectUnknownOptions(options, OPTION_NAMES, `the backoff ${strategy}`);
  return makeBackOff({ strategy, ...toMillisOptions(options) });
}

function toBackoff(name: StrategyName): Backoff {
  const { summary, formula, source, defaults } = strategies[name];
  const makeOne = (options: BackoffOptions = {}): BackOffStrategy => makeStrategy(name, options);
  return Object.freeze({
    name,
    summary,
    formula,
    source,
    defaults,
    make: makeOne,
    delays: (options?: BackoffOptions, random: Random = Math.random) => delaysOf(makeOne(options), random),
  });
}

function* delaysOf(strategy: BackOff, random: Random): Generator<Millis, void, void> {
  let memory = 0;
  for (let n = 0; ; n += 1) {
    const step = strategy.next(n, memory, random);
    if (step === undefined) return;
    memory = step.memory;
    yield step.delay;
  }
}

const DURATIONS = ['baseInterval', 'maxInterval', 'jitterInterval', 'slot'] as const;
const OPTION_NAMES = [
  ...DURATIONS,
  'multiplier',
  'jitter',
  'exponent',
  'table',
] as const satisfies readonly (keyof BackoffOptions)[];

function toMillisOptions(options: BackoffOptions): BackOffOptions {
  const read: { [K in (typeof DURATIONS)[number]]?: Millis } = {};
  for (const name of DURATIONS) {
    const given = options[name];
    if (given !== undefined) read[name] = parseMillis(given, name);
  }
  const { baseInterval: _base, maxInterval: _cap, jitterInterval: _jitter, slot: _slot, ...others } = options;
  return { ...others, ...read };
}
