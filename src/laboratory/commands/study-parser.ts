/** The studies of `tidegate lab`, and the parser of their options and operands. */
import { parseRate } from '../../config/values/unit-schemas.ts';
import type { BackOffOptions, StrategyName } from '../../core/backoff/strategies.ts';
import type { PerSecond } from '../../core/scalars.ts';
import { parseStrategyNames, parseStrategyOptions, STRATEGY_OPTIONS } from '../../cli/backoff/backoff-arguments.ts';
import type { ParsedOptions, UsageError } from '../../cli/cli-parse.ts';
import { isNegative, isNumber, usageError } from '../../cli/cli-parse.ts';

/** What a study computes. The study has its own default for each undefined member. */
export type StudySpec =
  | {
      readonly study: 'contention';
      readonly sizes: readonly number[] | undefined;
      readonly trials: number | undefined;
      /** Empty: the five strategies of docs/backoff.md. */
      readonly strategies: readonly StrategyName[];
      readonly options: BackOffOptions;
    }
  | { readonly study: 'throughput'; readonly slots: number | undefined }
  | { readonly study: 'chain'; readonly users: number; readonly spread: number; readonly load: number }
  | {
      readonly study: 'channel';
      readonly users: number;
      readonly load: number;
      readonly slots: number | undefined;
      readonly strategies: readonly StrategyName[];
      readonly options: BackOffOptions;
    }
  | {
      readonly study: 'ethernet';
      readonly stations: readonly number[] | undefined;
      /** Bytes. */
      readonly frame: number | undefined;
      readonly load: number | undefined;
      readonly seconds: number | undefined;
    }
  | {
      readonly study: 'thundering-herd';
      readonly clients: number | undefined;
      readonly rate: PerSecond | undefined;
      readonly burst: number | undefined;
      readonly trials: number | undefined;
      readonly strategies: readonly StrategyName[];
      readonly options: BackOffOptions;
    }
  | {
      readonly study: 'fit';
      /** A file. */
      readonly log: string;
      /** Scenarios, by file or name, whose policies are tried. */
      readonly policies: readonly string[];
      readonly rate: PerSecond | undefined;
      readonly burst: number | undefined;
    };

export const STUDY_NAMES = ['contention', 'aloha', 'ethernet', 'thundering-herd', 'fit'] as const;
export type StudyName = (typeof STUDY_NAMES)[number];

interface ChosenStrategies {
  readonly strategies: readonly StrategyName[];
  readonly options: BackOffOptions;
}

const CHANNEL_OPTIONS = 'a channel: --n and --load, without --k';

/** Parses one study. The first error found is the one that `parse` returns. */
export class StudyParser {
  readonly #options: ParsedOptions;
  #error: UsageError | undefined;

  constructor(options: ParsedOptions) {
    this.#options = options;
  }

  parse(name: StudyName): StudySpec | UsageError {
    const { positionals } = this.#options;
    const study = this.#parseStudy(name);
    const [operand] = positionals;
    if (operand !== undefined && !('strategies' in study) && !('log' in study)) {
      return usageError(name === 'aloha' ? `a STRATEGY needs ${CHANNEL_OPTIONS}` : `${name} takes no '${operand}'`);
    }
    const unused = Object.keys(STRATEGY_OPTIONS).find((option) => this.#options.has(option));
    if (unused !== undefined && !('strategies' in study)) {
      this.#error ??= usageError(`--${unused} needs a STRATEGY, and ${CHANNEL_OPTIONS}`);
    }
    return this.#error ?? study;
  }

  #parseStudy(name: StudyName): StudySpec {
    switch (name) {
      case 'contention':
        return {
          study: name,
          sizes: this.#parseWholeList('n', 2000),
          trials: this.#parseWhole('trials', 1e6),
          ...this.#parseOtherStrategies(),
        };
      case 'aloha':
        return this.#parseAloha();
      case 'ethernet':
        return {
          study: name,
          stations: this.#parseWholeList('n', 10_000),
          frame: this.#parseWhole('frame', 9000, 64),
          load: this.#parsePositiveNumber('load', 1000),
          seconds: this.#parsePositiveNumber('seconds', 1e6),
        };
      case 'thundering-herd':
        return {
          study: name,
          clients: this.#parseWhole('n', 1e6),
          rate: this.#parseRate('limit'),
          burst: this.#parseWhole('burst', 1e6),
          trials: this.#parseWhole('trials', 1e6),
          ...this.#parseOtherStrategies(),
        };
      case 'fit': {
        const [log, ...policies] = this.#options.positionals;
        if (log === undefined) this.#error ??= usageError('fit needs a LOG');
        const burst = this.#parseWhole('burst', 1e6);
        return { study: name, log: log ?? '', policies, rate: this.#parseRate('limit'), burst };
      }
    }
  }

  #parseAloha(): StudySpec {
    const [users, spread, load] = [
      this.#parseWhole('n', 5000),
      this.#parseWhole('k', 10_000),
      this.#parsePositiveNumber('load', 5000),
    ];
    const slots = this.#parseWhole('slots', 1e10);
    if (users === undefined && spread === undefined && load === undefined) return { study: 'throughput', slots };
    if (users === undefined || load === undefined) {
      this.#error ??= usageError('aloha needs --n USERS and --load LOAD, with --k K or a STRATEGY');
      return { study: 'throughput', slots };
    }
    if (load > users) {
      this.#error ??= usageError(`--load: expected at most ${users}, a packet a slot for each of the --n users`);
    }
    const { strategies, options } = this.#parseStrategies();
    if (spread === undefined) return { study: 'channel', users, load, slots, strategies, options };
    if (slots !== undefined) this.#error ??= usageError('--slots only applies to simulations, and --k is computed');
    return { study: 'chain', users, spread, load };
  }

  #parseOtherStrategies(): ChosenStrategies {
    if (this.#options.positionals.includes('none')) {
      this.#error ??= usageError("'none' is always included: name other strategies, or none at all");
    }
    return this.#parseStrategies();
  }

  #parseStrategies(): ChosenStrategies {
    const strategies = parseStrategyNames(this.#options.positionals);
    const options = parseStrategyOptions(this.#options);
    if ('kind' in strategies) this.#error ??= strategies;
    if ('kind' in options) this.#error ??= options;
    return { strategies: 'kind' in strategies ? [] : strategies, options: 'kind' in options ? {} : options };
  }

  #parseWhole(flag: string, max: number, min = 1): number | undefined {
    const text = this.#options.value(flag);
    if (text === undefined) return undefined;
    const value = Number(text);
    if (/^\d{1,11}$/.test(text) && value >= min && value <= max) return value;
    this.#error ??= usageError(`--${flag}: expected a whole number from ${min} to ${max}`);
    return undefined;
  }

  #parseWholeList(flag: string, max: number): readonly number[] | undefined {
    const text = this.#options.value(flag);
    if (text === undefined) return undefined;
    const values = text.split(',').map(Number);
    const isList = /^\d+(?:,\d+)*$/.test(text);
    if (isList && values.every((value) => value >= 1 && value <= max)) return [...new Set(values)];
    this.#error ??= usageError(`--${flag}: expected whole numbers from 1 to ${max}, such as 10,20,50`);
    return undefined;
  }

  #parsePositiveNumber(flag: string, max: number): number | undefined {
    const text = this.#options.value(flag);
    if (text === undefined) return undefined;
    if (isNumber(text) && Number(text) > 0 && Number(text) <= max) return Number(text);
    this.#error ??= usageError(`--${flag}: expected a number above 0, at most ${max}`);
    return undefined;
  }

  #parseRate(flag: string): PerSecond | undefined {
    const text = this.#options.value(flag);
    if (text === undefined) return undefined;
    if (isNegative(text)) this.#error ??= usageError(`--${flag}: a rate cannot be negative`);
    const result = parseRate(text);
    if (result.ok) return result.value;
    this.#error ??= usageError(`--${flag}: ${result.message}`, result.suggestion);
    return undefined;
  }
}
