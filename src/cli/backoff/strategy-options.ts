/** Builds strategies from command-line options, with messages in terms of the flags. */
import type { BackOffOptions, BackOffStrategy, OptionName, StrategyName } from '../../core/backoff/strategies.ts';
import { BackOffOptionError, makeBackOff, strategies, strategyNames } from '../../core/backoff/strategies.ts';
import { formatDelay } from '../format-delay.ts';

/**
 * @param given the options of the command line
 * @param studyDefaults defaults of a study, which override those of the strategy
 * @throws RangeError with a one-line message if options contradict each other
 */
export function makeStrategy(
  strategy: StrategyName,
  given: BackOffOptions,
  studyDefaults: BackOffOptions = {},
): BackOffStrategy {
  try {
    return makeBackOff({ strategy, ...studyDefaults, ...given });
  } catch (error) {
    if (!(error instanceof BackOffOptionError)) throw error;
    throw new RangeError(describeMisfit(strategy, given, studyDefaults, error), { cause: error });
  }
}

function describeMisfit(
  strategy: StrategyName,
  given: BackOffOptions,
  studyDefaults: BackOffOptions,
  { option, message }: BackOffOptionError,
): string {
  const { baseInterval = 0, maxInterval = 0 } = { ...strategies[strategy].defaults, ...studyDefaults, ...given };
  if (option === 'baseInterval' && given.baseInterval === 0) {
    return `${strategy}: --base must be above 0, or it never reaches --max`;
  }
  if (option !== 'maxInterval') return message;
  const [base, max] = [formatDelay(baseInterval), formatDelay(maxInterval)];
  if (given.maxInterval === undefined) {
    return `${strategy}: --base ${base} is longer than --max, which is ${max} unless given`;
  }
  return given.baseInterval === undefined
    ? `${strategy}: --max ${max} is shorter than --base, which is ${base} unless given`
    : `${strategy}: --max ${max} is shorter than --base ${base}`;
}

const OPTION_FLAGS: Readonly<Record<OptionName, string>> = {
  baseInterval: '--base',
  multiplier: '--multiplier',
  maxInterval: '--max',
  jitter: '--jitter as a part',
  jitterInterval: '--jitter as a duration',
  exponent: '--exponent',
  table: '--table',
  slot: '--slot',
};

/** One line for each given option that none of the strategies uses. */
export function describeUnusedOptions(names: readonly StrategyName[], given: BackOffOptions): string[] {
  const isReadBy = (option: OptionName) => (name: StrategyName) => option in strategies[name].defaults;
  return Object.keys(OPTION_FLAGS)
    .filter(isOption)
    .filter((option) => given[option] !== undefined && !names.some(isReadBy(option)))
    .map((option) => {
      const readers = strategyNames.filter(isReadBy(option));
      const reading = `${listNames(readers)} ${readers.length === 1 ? 'uses' : 'use'} it`;
      return `tidegate: ${OPTION_FLAGS[option]} has no effect on ${listNames(names)}: ${reading}`;
    });
}

function isOption(name: string): name is OptionName {
  return Object.hasOwn(OPTION_FLAGS, name);
}

/** "a, b and c". */
export function listNames(names: readonly string[]): string {
  const [last = '', ...others] = names.toReversed();
  return others.length === 0 ? last : `${others.toReversed().join(', ')} and ${last}`;
}
