/** What can be typed behind `tidegate lab`. */
import { suggest } from '../../config/values/suggest.ts';
import { readRate } from '../../config/values/unit-schemas.ts';
import type { BackOffOptions, StrategyName } from '../../core/backoff/strategies.ts';
import type { PerSecond } from '../../core/exchange/attempt-outcome.ts';
import { readStrategyNames, readStrategyOptions, STRATEGY_OPTIONS } from '../../cli/backoff/backoff-arguments.ts';
import type { Options, Typed, UsageError } from '../../cli/cli-parse.ts';
import { isNegative, isNumber, readSeed, readTyped, SWITCH, TEXT, usageError } from '../../cli/cli-parse.ts';

export interface LabCommand {
  readonly kind: 'lab';
  readonly study: StudySpec;
  readonly seed: number;
  readonly json: boolean;
  readonly svg: string | undefined;
}

/** What is to be found out. Undefined: as the study has it. */
export type StudySpec =
  | {
      readonly study: 'contention';
      readonly sizes: readonly number[] | undefined;
      readonly trials: number | undefined;
      /** Empty: the five of the essay. */
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

const STUDIES = ['contention', 'aloha', 'ethernet', 'thundering-herd', 'fit'] as const;
type StudyName = (typeof STUDIES)[number];

const COMMON: Options = { help: { ...SWITCH, short: 'h' }, seed: TEXT, json: SWITCH, svg: TEXT };
const OPTIONS: Readonly<Record<StudyName, Options>> = {
  contention: { ...STRATEGY_OPTIONS, n: TEXT, trials: TEXT },
  aloha: { ...STRATEGY_OPTIONS, n: TEXT, k: TEXT, load: TEXT, slots: TEXT },
  ethernet: { n: TEXT, frame: TEXT, load: TEXT, seconds: TEXT },
  'thundering-herd': { ...STRATEGY_OPTIONS, n: TEXT, limit: TEXT, burst: TEXT, trials: TEXT },
  fit: { limit: TEXT, burst: TEXT },
};

type Help = { readonly kind: 'help'; readonly topic: 'lab' };

/** @param argv behind `lab` */
export function parseLab(argv: readonly string[]): LabCommand | Help | UsageError {
  const [first = '', ...others] = argv;
  if (first === '' || first === '--help' || first === '-h') return { kind: 'help', topic: 'lab' };
  const name = STUDIES.find((study) => study === first);
  if (name === undefined) return usageError(`the lab has no '${first}'`, suggest(first, STUDIES) ?? STUDIES.join(', '));
  const typed = readTyped(others, { ...COMMON, ...OPTIONS[name] });
  if ('kind' in typed) return typed;
  if (typed.has('help')) return { kind: 'help', topic: 'lab' };
  const seed = readSeed(typed);
  if (typeof seed === 'object') return seed;
  const study = new StudyReader(typed).read(name);
  if ('kind' in study) return study;
  const svg = typed.value('svg');
  if (svg === '') return usageError('--svg needs a FILE');
  return { kind: 'lab', study, seed: seed ?? 1, json: typed.has('json'), svg };
}

interface Chosen {
  readonly strategies: readonly StrategyName[];
  readonly options: BackOffOptions;
}

const CHANNEL = 'a channel: --n and --load, without --k';

/** Reads numbers until one of them is none: that is what is told then. */
class StudyReader {
  readonly #typed: Typed;
  #mistake: UsageError | undefined;

  constructor(typed: Typed) {
    this.#typed = typed;
  }

  read(name: StudyName): StudySpec | UsageError {
    const { rest } = this.#typed;
    const study = this.#study(name);
    const [operand] = rest;
    if (operand !== undefined && !('strategies' in study) && !('log' in study)) {
      return usageError(name === 'aloha' ? `a STRATEGY needs ${CHANNEL}` : `${name} takes no '${operand}'`);
    }
    const unused = Object.keys(STRATEGY_OPTIONS).find((option) => this.#typed.has(option));
    if (unused !== undefined && !('strategies' in study)) {
      this.#mistake ??= usageError(`--${unused} is of a STRATEGY on ${CHANNEL}`);
    }
    return this.#mistake ?? study;
  }

  #study(name: StudyName): StudySpec {
    switch (name) {
      case 'contention':
        return {
          study: name,
          sizes: this.#wholes('n', 2000),
          trials: this.#whole('trials', 1e6),
          ...this.#contestants(),
        };
      case 'aloha':
        return this.#aloha();
      case 'ethernet':
        return {
          study: name,
          stations: this.#wholes('n', 10_000),
          frame: this.#whole('frame', 9000, 64),
          load: this.#number('load', 1000),
          seconds: this.#number('seconds', 1e6),
        };
      case 'thundering-herd':
        return {
          study: name,
          clients: this.#whole('n', 1e6),
          rate: this.#rate('limit'),
          burst: this.#whole('burst', 1e6),
          trials: this.#whole('trials', 1e6),
          ...this.#contestants(),
        };
      case 'fit': {
        const [log, ...policies] = this.#typed.rest;
        if (log === undefined) this.#mistake ??= usageError('fit needs a LOG');
        const burst = this.#whole('burst', 1e6);
        return { study: name, log: log ?? '', policies, rate: this.#rate('limit'), burst };
      }
    }
  }

  #aloha(): StudySpec {
    const [users, spread, load] = [this.#whole('n', 5000), this.#whole('k', 10_000), this.#number('load', 5000)];
    const slots = this.#whole('slots', 1e10);
    if (users === undefined && spread === undefined && load === undefined) return { study: 'throughput', slots };
    if (users === undefined || load === undefined) {
      this.#mistake ??= usageError('aloha needs --n USERS and --load LOAD, and --k K or a STRATEGY beside them');
      return { study: 'throughput', slots };
    }
    if (load > users) {
      this.#mistake ??= usageError(`--load: at most ${users}, a packet a slot of each of the --n users`);
    }
    const { strategies, options } = this.#strategies();
    if (spread === undefined) return { study: 'channel', users, load, slots, strategies, options };
    if (slots !== undefined) this.#mistake ??= usageError('--slots is of a simulation: --k is computed');
    return { study: 'chain', users, spread, load };
  }

  #contestants(): Chosen {
    if (this.#typed.rest.includes('none')) {
      this.#mistake ??= usageError("'none' always takes part: name others, or nothing");
    }
    return this.#strategies();
  }

  #strategies(): Chosen {
    const strategies = readStrategyNames(this.#typed.rest);
    const options = readStrategyOptions(this.#typed);
    if ('kind' in strategies) this.#mistake ??= strategies;
    if ('kind' in options) this.#mistake ??= options;
    return { strategies: 'kind' in strategies ? [] : strategies, options: 'kind' in options ? {} : options };
  }

  #whole(flag: string, most: number, least = 1): number | undefined {
    const text = this.#typed.value(flag);
    if (text === undefined) return undefined;
    const value = Number(text);
    if (/^\d{1,11}$/.test(text) && value >= least && value <= most) return value;
    this.#mistake ??= usageError(`--${flag}: expected a whole number from ${least} to ${most}`);
    return undefined;
  }

  #wholes(flag: string, most: number): readonly number[] | undefined {
    const text = this.#typed.value(flag);
    if (text === undefined) return undefined;
    const values = text.split(',').map(Number);
    const isList = /^\d+(?:,\d+)*$/.test(text);
    if (isList && values.every((value) => value >= 1 && value <= most)) return [...new Set(values)];
    this.#mistake ??= usageError(`--${flag}: expected whole numbers from 1 to ${most}, such as 10,20,50`);
    return undefined;
  }

  /** Above 0. */
  #number(flag: string, most: number): number | undefined {
    const text = this.#typed.value(flag);
    if (text === undefined) return undefined;
    if (isNumber(text) && Number(text) > 0 && Number(text) <= most) return Number(text);
    this.#mistake ??= usageError(`--${flag}: expected a number above 0, at most ${most}`);
    return undefined;
  }

  #rate(flag: string): PerSecond | undefined {
    const text = this.#typed.value(flag);
    if (text === undefined) return undefined;
    if (isNegative(text)) this.#mistake ??= usageError(`--${flag}: a rate cannot be negative`);
    const reading = readRate(text);
    if (reading.ok) return reading.value;
    this.#mistake ??= usageError(`--${flag}: ${reading.message}`, reading.suggestion);
    return undefined;
  }
}
