import type { Millis } from '../scalars.ts';

/** The options of all strategies. A strategy reads those that its `defaults` have, and uses the default if one is undefined. */
export interface BackOffOptions {
  /** The first delay, or the unit the delays grow from. Within [0, 2⁵³). */
  readonly baseInterval?: Millis | undefined;
  /** The ratio of a delay to the previous one, ≥ 1. */
  readonly multiplier?: number | undefined;
  /** The cap, ≥ baseInterval where both are read. Within [0, 2⁵³). */
  readonly maxInterval?: Millis | undefined;
  /** How far a delay may differ from its middle, as a part of the middle: within [0, 1]. */
  readonly jitter?: number | undefined;
  /** The upper end of what is added to a delay. Within [0, 2⁵³). */
  readonly jitterInterval?: Millis | undefined;
  /** The power of a polynomial, ≥ 0. */
  readonly exponent?: number | undefined;
  /** The number of slots to choose from, for each retry; the last is repeated. At least one whole number ≥ 1. */
  readonly table?: readonly number[] | undefined;
  /** The length of a slot. Within [0, 2⁵³). */
  readonly slot?: Millis | undefined;
}

export type OptionName = keyof BackOffOptions;

/** The options `K`, each with a value. */
export type ResolvedOptions<K extends OptionName> = { readonly [P in K]: NonNullable<BackOffOptions[P]> };

/** An option has a value that no strategy can use. */
export class BackOffOptionError extends RangeError {
  override readonly name = 'BackOffOptionError';
  readonly option: OptionName;

  constructor(option: OptionName, demand: string, value: unknown) {
    super(`${option} must be ${demand}, not ${Array.isArray(value) ? `[${value.join(', ')}]` : String(value)}`);
    this.option = option;
  }
}

/** Longer durations lose their milliseconds to rounding; 2⁵³ ms are 285 000 years. */
const MAX_DURATION: Millis = Number.MAX_SAFE_INTEGER;

const BOUNDS = {
  baseInterval: { min: 0, max: MAX_DURATION, demand: 'a duration, 0 or more' },
  multiplier: { min: 1, max: Number.MAX_VALUE, demand: 'at least 1' },
  maxInterval: { min: 0, max: MAX_DURATION, demand: 'a duration, 0 or more' },
  jitter: { min: 0, max: 1, demand: 'from 0 to 1' },
  jitterInterval: { min: 0, max: MAX_DURATION, demand: 'a duration, 0 or more' },
  exponent: { min: 0, max: Number.MAX_VALUE, demand: 'at least 0' },
  slot: { min: 0, max: MAX_DURATION, demand: 'a duration, 0 or more' },
} as const satisfies Record<Exclude<OptionName, 'table'>, { min: number; max: number; demand: string }>;

const NUMBERS = ['baseInterval', 'multiplier', 'maxInterval', 'jitter', 'jitterInterval', 'exponent', 'slot'] as const;

/**
 * Merges the given options into the defaults. Keeps only the options that the strategy reads: those that have a default.
 * @throws BackOffOptionError for an impossible option, read or not, and for a cap below the base interval.
 */
export function resolveOptions<K extends OptionName>(
  defaults: ResolvedOptions<K>,
  overrides: BackOffOptions,
): ResolvedOptions<K> {
  checkBounds(overrides);
  const read = Object.entries(overrides).filter(([name, value]) => value !== undefined && name in defaults);
  const resolved = { ...defaults, ...Object.fromEntries(read) };
  checkOrder(resolved);
  return resolved;
}

function checkBounds(overrides: BackOffOptions): void {
  for (const name of NUMBERS) {
    const value = overrides[name];
    const { min, max, demand } = BOUNDS[name];
    // The comparison is written so that NaN fails too.
    if (value !== undefined && !(value >= min && value <= max)) throw new BackOffOptionError(name, demand, value);
  }
  const { table } = overrides;
  if (table !== undefined && !(table.length > 0 && table.every((k) => Number.isSafeInteger(k) && k >= 1))) {
    throw new BackOffOptionError('table', 'a list of whole numbers from 1', table);
  }
}

function checkOrder({ baseInterval = 0, maxInterval = Infinity }: BackOffOptions): void {
  if (maxInterval < baseInterval) {
    throw new BackOffOptionError('maxInterval', `at least baseInterval (${baseInterval})`, maxInterval);
  }
}
