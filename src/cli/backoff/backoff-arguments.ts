import { suggest } from '../../config/values/suggest.ts';
import { parseDuration } from '../../config/values/unit-schemas.ts';
import type { BackOffOptions, StrategyName } from '../../core/backoff/strategies.ts';
import { isStrategyName, strategyNames } from '../../core/backoff/strategies.ts';
import { listNames } from './strategy-options.ts';
import type { ParsedOptions, UsageError } from '../cli-parse.ts';
import { isNegative, isNumber, BOOLEAN_OPTION, STRING_OPTION, usageError } from '../cli-parse.ts';

export interface BackoffCommand {
  readonly kind: 'backoff';
  /** Empty: list all strategies. */
  readonly names: readonly StrategyName[];
  readonly options: BackOffOptions;
  /** Delays to show, 1 to 1000; undefined if not given. */
  readonly attempts: number | undefined;
  readonly json: boolean;
  /** File for the drawing. */
  readonly svg: string | undefined;
}

/** The options of strategies on a command line. */
export const STRATEGY_OPTIONS = {
  base: STRING_OPTION,
  multiplier: STRING_OPTION,
  max: STRING_OPTION,
  jitter: STRING_OPTION,
  exponent: STRING_OPTION,
  table: STRING_OPTION,
  slot: STRING_OPTION,
} as const;

export const BACKOFF_OPTIONS = {
  ...STRATEGY_OPTIONS,
  attempts: STRING_OPTION,
  json: BOOLEAN_OPTION,
  svg: STRING_OPTION,
} as const;

export function toBackoffCommand(parsed: ParsedOptions): BackoffCommand | UsageError {
  const { value, has, positionals } = parsed;
  const names = parseStrategyNames(positionals);
  if ('kind' in names) return names;
  const options = parseStrategyOptions(parsed);
  if ('kind' in options) return options;
  const unused = Object.keys(BACKOFF_OPTIONS).find((option) => option !== 'json' && has(option));
  if (names.length === 0 && unused !== undefined) {
    return usageError(`backoff without a NAME lists the strategies: --${unused} needs a NAME`);
  }
  const attempts = value('attempts');
  if (attempts !== undefined && !(/^\d{1,4}$/.test(attempts) && Number(attempts) >= 1 && Number(attempts) <= 1000)) {
    return usageError('--attempts: expected a whole number from 1 to 1000');
  }
  const svg = value('svg');
  if (svg === '') return usageError('--svg needs a FILE');
  return {
    kind: 'backoff',
    names,
    options,
    attempts: attempts === undefined ? undefined : Number(attempts),
    json: has('json'),
    svg,
  };
}

/** Without duplicates, in the order given. */
export function parseStrategyNames(words: readonly string[]): readonly StrategyName[] | UsageError {
  const names: StrategyName[] = [];
  for (const name of new Set(words)) {
    if (!isStrategyName(name)) return unknownStrategy(name);
    names.push(name);
  }
  return names;
}

function unknownStrategy(name: string): UsageError {
  const near = suggest(name, strategyNames);
  const known = near === undefined ? `; there are ${listNames(strategyNames)}` : '';
  return usageError(`no strategy is called '${name}'${known}`, near);
}

export function parseStrategyOptions({ value }: ParsedOptions): BackOffOptions | UsageError {
  const options: { -readonly [K in keyof BackOffOptions]: BackOffOptions[K] } = {};
  for (const [flag, option] of [
    ['base', 'baseInterval'],
    ['max', 'maxInterval'],
    ['slot', 'slot'],
  ] as const) {
    const text = value(flag);
    if (text === undefined) continue;
    if (isNegative(text)) return usageError(`--${flag}: a duration cannot be negative`);
    // 0 needs no unit, here and in the configuration.
    const reading = parseDuration(text === '0' ? 0 : text);
    if (!reading.ok) return usageError(`--${flag}: ${reading.message}`, reading.suggestion);
    options[option] = reading.value;
  }
  const multiplier = value('multiplier');
  if (multiplier !== undefined) {
    if (!(isNumber(multiplier) && Number(multiplier) >= 1)) return usageError('--multiplier: expected a number from 1');
    options.multiplier = Number(multiplier);
  }
  const exponent = value('exponent');
  if (exponent !== undefined) {
    if (!(isNumber(exponent) && Number(exponent) <= 100)) {
      return usageError('--exponent: expected a number from 0 to 100');
    }
    options.exponent = Number(exponent);
  }
  const table = value('table');
  if (table !== undefined) {
    if (!/^[1-9]\d{0,8}(?:,[1-9]\d{0,8})*$/.test(table)) {
      return usageError('--table: expected whole numbers from 1, such as 1,10,100,200');
    }
    options.table = table.split(',').map(Number);
  }
  const jitter = value('jitter');
  if (jitter !== undefined) {
    const reading = parseDuration(jitter);
    const part = isNumber(jitter) && Number(jitter) <= 1;
    if (!part && !reading.ok) return usageError('--jitter: expected a part from 0 to 1, or a duration such as 100ms');
    if (part) options.jitter = Number(jitter);
    else if (reading.ok) options.jitterInterval = reading.value;
  }
  return options;
}
