/** Strategies as a command line asks for them, and what is to be said of their options: in the words in which they were typed. */
import type { BackOffOptions, BackOffStrategy, OptionName, StrategyName } from '../../core/backoff/strategies.ts';
import { BackOffOptionError, makeBackOff, strategies, strategyNames } from '../../core/backoff/strategies.ts';
import { formatDelay } from '../format-delay.ts';

/**
 * @param typed what was given
 * @param ofStudy what a study has in place of the strategy's own defaults
 * @throws RangeError where options do not fit each other: a line for whoever typed them
 */
export function makeStrategy(
  strategy: StrategyName,
  typed: BackOffOptions,
  ofStudy: BackOffOptions = {},
): BackOffStrategy {
  try {
    return makeBackOff({ strategy, ...ofStudy, ...typed });
  } catch (error) {
    if (!(error instanceof BackOffOptionError)) throw error;
    throw new RangeError(tellMisfit(strategy, typed, ofStudy, error), { cause: error });
  }
}

function tellMisfit(
  strategy: StrategyName,
  typed: BackOffOptions,
  ofStudy: BackOffOptions,
  { option, message }: BackOffOptionError,
): string {
  const { baseInterval = 0, maxInterval = 0 } = { ...strategies[strategy].defaults, ...ofStudy, ...typed };
  if (option === 'baseInterval' && typed.baseInterval === 0) {
    return `${strategy}: --base must be above 0, or it never reaches --max`;
  }
  if (option !== 'maxInterval') return message;
  const [base, max] = [formatDelay(baseInterval), formatDelay(maxInterval)];
  if (typed.maxInterval === undefined) {
    return `${strategy}: --base ${base} is longer than --max, which is ${max} unless given`;
  }
  return typed.baseInterval === undefined
    ? `${strategy}: --max ${max} is shorter than --base, which is ${base} unless given`
    : `${strategy}: --max ${max} is shorter than --base ${base}`;
}

const TYPED_AS: Readonly<Record<OptionName, string>> = {
  baseInterval: '--base',
  multiplier: '--multiplier',
  maxInterval: '--max',
  jitter: '--jitter as a part',
  jitterInterval: '--jitter as a duration',
  exponent: '--exponent',
  table: '--table',
  slot: '--slot',
};

/** A line for each option that was typed and that none of the strategies reads: it would be missed in silence. */
export function tellUnread(names: readonly StrategyName[], typed: BackOffOptions): string[] {
  const isReadBy = (option: OptionName) => (name: StrategyName) => option in strategies[name].defaults;
  return Object.keys(TYPED_AS)
    .filter(isOption)
    .filter((option) => typed[option] !== undefined && !names.some(isReadBy(option)))
    .map((option) => {
      const readers = strategyNames.filter(isReadBy(option));
      const reading = `${listNames(readers)} ${readers.length === 1 ? 'reads' : 'read'} it`;
      return `tidegate: ${TYPED_AS[option]} makes no difference to ${listNames(names)}: ${reading}`;
    });
}

function isOption(name: string): name is OptionName {
  return Object.hasOwn(TYPED_AS, name);
}

/** "a, b and c". */
export function listNames(names: readonly string[]): string {
  const [last = '', ...others] = names.toReversed();
  return others.length === 0 ? last : `${others.toReversed().join(', ')} and ${last}`;
}
