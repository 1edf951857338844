import type { Millis } from '../exchange/attempt-outcome.ts';

/** What a strategy can be told. Which of these it reads, and what it takes where one is undefined, its `defaults` say. */
export interface BackOffOptions {
  /** The first delay, or the unit the delays grow from. Within [0, 2⁵³). */
  readonly baseInterval?: Millis | undefined;
  /** How much longer each delay is than the one before, ≥ 1. */
  readonly multiplier?: number | undefined;
  /** The cap, ≥ baseInterval where both are read. Within [0, 2⁵³). */
  readonly maxInterval?: Millis | undefined;
  /** How far a delay strays from its middle, as a part of it: within [0, 1]. */
  readonly jitter?: number | undefined;
  /** The most that is added to a delay. Within [0, 2⁵³). */
  readonly jitterInterval?: Millis | undefined;
  /** The power of a polynomial, ≥ 0. */
  readonly exponent?: number | undefined;
  /** Slots to choose from, retry after retry; the last is repeated. At least one whole number ≥ 1. */
  readonly table?: readonly number[] | undefined;
  /** The length of a slot. Within [0, 2⁵³). */
  readonly slot?: Millis | undefined;
}

export type OptionName = keyof BackOffOptions;

/** The options `K`, each with a value. */
export type Chosen<K extends OptionName> = { readonly [P in K]: NonNullable<BackOffOptions[P]> };

/** An option no strategy can work with. */
export class BackOffOptionError extends RangeError {
  override readonly name = 'BackOffOptionError';
  readonly option: OptionName;

  constructor(option: OptionName, demand: string, value: unknown) {
    super(`${option} must be ${demand}, not ${Array.isArray(value) ? `[${value.join(', ')}]` : String(value)}`);
    this.option = option;
  }
}

/** Longer durations lose their milliseconds to rounding; 2⁵³ ms are 285 000 years. */
const LONGEST: Millis = Number.MAX_SAFE_INTEGER;

const BOUNDS = {
  baseInterval: { least: 0, most: LONGEST, demand: 'a duration, 0 or more' },
  multiplier: { least: 1, most: Number.MAX_VALUE, demand: 'at least 1' },
  maxInterval: { least: 0, most: LONGEST, demand: 'a duration, 0 or more' },
  jitter: { least: 0, most: 1, demand: 'from 0 to 1' },
  jitterInterval: { least: 0, most: LONGEST, demand: 'a duration, 0 or more' },
  exponent: { least: 0, most: Number.MAX_VALUE, demand: 'at least 0' },
  slot: { least: 0, most: LONGEST, demand: 'a duration, 0 or more' },
} as const satisfies Record<Exclude<OptionName, 'table'>, { least: number; most: number; demand: string }>;

const NUMBERS = ['baseInterval', 'multiplier', 'maxInterval', 'jitter', 'jitterInterval', 'exponent', 'slot'] as const;

/**
 * The given options over the defaults; only those the strategy reads, which are those it has defaults for.
 * @throws BackOffOptionError for a given option that is impossible, read or not, and for a cap below the base interval.
 */
export function chooseOptions<K extends OptionName>(defaults: Chosen<K>, given: BackOffOptions): Chosen<K> {
  checkEach(given);
  const read = Object.entries(given).filter(([name, value]) => value !== undefined && name in defaults);
  const chosen = { ...defaults, ...Object.fromEntries(read) };
  checkOrder(chosen);
  return chosen;
}

function checkEach(given: BackOffOptions): void {
  for (const name of NUMBERS) {
    const value = given[name];
    const { least, most, demand } = BOUNDS[name];
    // Written so that NaN fails too.
    if (value !== undefined && !(value >= least && value <= most)) throw new BackOffOptionError(name, demand, value);
  }
  const { table } = given;
  if (table !== undefined && !(table.length > 0 && table.every((k) => Number.isSafeInteger(k) && k >= 1))) {
    throw new BackOffOptionError('table', 'a list of whole numbers from 1', table);
  }
}

function checkOrder({ baseInterval = 0, maxInterval = Infinity }: BackOffOptions): void {
  if (maxInterval < baseInterval) {
    throw new BackOffOptionError('maxInterval', `at least baseInterval (${baseInterval})`, maxInterval);
  }
}
