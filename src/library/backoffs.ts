/** The registry of backoff strategies, in the words of the configuration. */
import type { BackOffOptions, BackOffStrategy, StrategyDefinition, StrategyName } from '../core/backoff/strategies.ts';
import { isStrategyName, makeBackOff, strategies, strategyNames } from '../core/backoff/strategies.ts';
import type { BackOff, Millis, Random } from '../core/exchange/attempt-outcome.ts';
import { suggest } from '../config/values/suggest.ts';
import { checkNames } from './unknown-options.ts';
import type { Duration } from './duration.ts';
import { readMillis } from './duration.ts';

/** What a strategy can be told; what is left out is its own default. Lengths of time as `Duration`. */
export interface BackoffOptions {
  /** The first delay, or the unit the delays grow from. */
  readonly baseInterval?: Duration | undefined;
  /** How much longer each delay is than the one before, ≥ 1. */
  readonly multiplier?: number | undefined;
  /** The cap; at least `baseInterval`. */
  readonly maxInterval?: Duration | undefined;
  /** How far a delay strays from its middle, as a part of it: within [0, 1]. */
  readonly jitter?: number | undefined;
  /** The most that is added to a delay. */
  readonly jitterInterval?: Duration | undefined;
  /** The power of a polynomial, ≥ 0. */
  readonly exponent?: number | undefined;
  /** Slots to choose from, retry after retry; the last is repeated. Whole numbers ≥ 1. */
  readonly table?: readonly number[] | undefined;
  /** The length of a slot. */
  readonly slot?: Duration | undefined;
}

/** A strategy by name, with options over its defaults. */
export interface BackoffSpec extends BackoffOptions {
  readonly strategy: StrategyName;
}

/** A strategy of the registry. */
export interface Backoff extends Pick<StrategyDefinition, 'summary' | 'formula' | 'source' | 'defaults'> {
  readonly name: StrategyName;
  /**
   * Ready to use, and without state of its own: one serves any number of callers.
   * @throws RangeError naming an option that is impossible, TypeError for one that is unknown and for a duration that is none
   */
  make(options?: BackoffOptions): BackOffStrategy;
  /**
   * Its delays in milliseconds, one after another, until it gives up; most never do.
   * @throws as `make`
   */
  delays(options?: BackoffOptions, random?: Random): Generator<Millis, void, void>;
}

/** All strategies by name, in the order of a listing: from the plainest on. */
export const backoffs: Readonly<Record<StrategyName, Backoff>> = Object.freeze(
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every name has an entry: they are the names of the type
  Object.fromEntries(strategyNames.map((name) => [name, describe(name)])) as Record<StrategyName, Backoff>,
);

/**
 * @param given a name, a name with options, or a strategy that is ready
 * @throws RangeError or TypeError that says what is wrong with it
 */
export function chooseBackoff(given: StrategyName | BackoffSpec | BackOff): BackOff {
  if (typeof given === 'string') return make(given, {});
  if (typeof given !== 'object' || given === null) {
    throw new TypeError(`backOff must be the name of a strategy, {strategy, …} or a strategy, not ${String(given)}`);
  }
  if ('next' in given) return given;
  const { strategy, ...options } = given;
  return make(strategy, options);
}

function make(strategy: StrategyName, options: BackoffOptions): BackOffStrategy {
  if (!isStrategyName(strategy)) {
    const near = suggest(String(strategy), strategyNames);
    const told = near === undefined ? `: there are ${strategyNames.join(', ')}` : ` (did you mean ${near}?)`;
    throw new RangeError(`no backoff strategy is called '${String(strategy)}'${told}`);
  }
  checkNames(options, OPTIONS, `the backoff ${strategy}`);
  return makeBackOff({ strategy, ...inMillis(options) });
}

function describe(name: StrategyName): Backoff {
  const { summary, formula, source, defaults } = strategies[name];
  const makeOne = (options: BackoffOptions = {}): BackOffStrategy => make(name, options);
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
const OPTIONS = [
  ...DURATIONS,
  'multiplier',
  'jitter',
  'exponent',
  'table',
] as const satisfies readonly (keyof BackoffOptions)[];

function inMillis(options: BackoffOptions): BackOffOptions {
  const read: { [K in (typeof DURATIONS)[number]]?: Millis } = {};
  for (const name of DURATIONS) {
    const given = options[name];
    if (given !== undefined) read[name] = readMillis(given, name);
  }
  const { baseInterval: _base, maxInterval: _cap, jitterInterval: _jitter, slot: _slot, ...others } = options;
  return { ...others, ...read };
}
