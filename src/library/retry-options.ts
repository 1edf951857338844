import type { StrategyName } from '../core/backoff/strategies.ts';
import type { BackOff, Millis, Random } from '../core/exchange/attempt-outcome.ts';
import type { BackoffSpec } from './backoffs.ts';
import { chooseBackoff } from './backoffs.ts';
import type { Classification, Settled } from './classify.ts';
import { classify } from './classify.ts';
import { checkNames } from './unknown-options.ts';
import type { RetryClock } from './retry-clock.ts';
import { systemClock } from './retry-clock.ts';
import type { Duration } from './duration.ts';
import { readMillis } from './duration.ts';
import { RetryBudget } from './retry-budget.ts';

/** A retry that is about to be waited for. */
export interface RetryNotice<T> {
  /** The attempt that it follows, from 1. */
  readonly attempt: number;
  /** What that came to. */
  readonly settled: Settled<T>;
  readonly delay: Millis;
  /** Where the delay comes from: the strategy, or what the upstream asked for. */
  readonly source: 'backoff' | 'hint';
}

/** In the words of the configuration; what is left out is its default there. */
export interface RetryOptions<T> {
  /** Attempts in all, the first one included; `Infinity` for no bound. 4 unless given. */
  readonly attempts?: number | undefined;
  /** A strategy by name, with options, or ready. `full-jitter` unless given. */
  readonly backOff?: StrategyName | BackoffSpec | BackOff | undefined;
  /** For all of it, waits included. No bound unless given. */
  readonly timeout?: Duration | undefined;
  /** The same as a point on the clock of `performance.now()`, such as an outer attempt has; the earlier of the two holds. */
  readonly deadline?: Millis | undefined;
  /** For each attempt. No bound unless given. */
  readonly perTryTimeout?: Duration | undefined;
  /** A wait that is asked for is not begun when it is longer. 60 s unless given. */
  readonly maxRetryAfter?: Duration | undefined;
  /** Ends it at once, be it in an attempt or in a wait; rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Whether an outcome calls for another attempt; `classify` unless given. What it throws is what `retry` rejects with. */
  readonly classify?: ((settled: Settled<T>, attempt: number) => Classification) | undefined;
  /** Shared by all that ask the same upstream: bounds retries to a share of successes. None unless given. */
  readonly budget?: RetryBudget | undefined;
  /** Told before each wait. What it throws is what `retry` rejects with. */
  readonly onRetry?: ((notice: RetryNotice<T>) => void) | undefined;
  readonly random?: Random | undefined;
  readonly clock?: RetryClock | undefined;
}

/** As read. */
export interface RetryTerms<T> {
  readonly attempts: number;
  readonly backOff: BackOff;
  readonly deadline: Millis;
  readonly perTryTimeout: Millis;
  readonly maxRetryAfter: Millis;
  readonly signal: AbortSignal | undefined;
  readonly classify: (settled: Settled<T>, attempt: number) => Classification;
  readonly budget: RetryBudget | undefined;
  readonly onRetry: ((notice: RetryNotice<T>) => void) | undefined;
  readonly random: Random;
  readonly clock: RetryClock;
}

const NAMES = [
  'attempts',
  'backOff',
  'timeout',
  'deadline',
  'perTryTimeout',
  'maxRetryAfter',
  'signal',
  'classify',
  'budget',
  'onRetry',
  'random',
  'clock',
] as const satisfies readonly (keyof RetryOptions<unknown>)[];

const ATTEMPTS = 4;
const MAX_RETRY_AFTER: Millis = 60_000;

/** @throws TypeError or RangeError that says what is wrong: a slip would otherwise be a retry that never was */
export function readOptions<T>(options: RetryOptions<T>): RetryTerms<T> {
  checkNames(options, NAMES, 'retry');
  const { attempts = ATTEMPTS, backOff = 'full-jitter', deadline, clock = systemClock } = options;
  if (!(attempts === Infinity || (Number.isSafeInteger(attempts) && attempts >= 1))) {
    throw new RangeError(`attempts must be a whole number from 1, or Infinity, not ${String(attempts)}`);
  }
  if (deadline !== undefined && (typeof deadline !== 'number' || Number.isNaN(deadline))) {
    throw new TypeError('deadline must be a point on the clock of performance.now(), in milliseconds');
  }
  if (!(options.budget === undefined || options.budget instanceof RetryBudget)) {
    throw new TypeError('budget must be a RetryBudget, that is shared: new RetryBudget({ ratio, burst })');
  }
  for (const name of ['classify', 'onRetry', 'random'] as const) {
    const given: unknown = options[name];
    if (given !== undefined && typeof given !== 'function') throw new TypeError(`${name} must be a function`);
  }
  const timeout = readBound(options.timeout, 'timeout');
  return {
    attempts,
    backOff: chooseBackoff(backOff),
    deadline: Math.min(deadline ?? Infinity, clock.now() + timeout),
    perTryTimeout: readBound(options.perTryTimeout, 'perTryTimeout'),
    maxRetryAfter:
      options.maxRetryAfter === undefined ? MAX_RETRY_AFTER : readMillis(options.maxRetryAfter, 'maxRetryAfter'),
    signal: options.signal,
    classify: options.classify ?? classify,
    budget: options.budget,
    onRetry: options.onRetry,
    random: options.random ?? Math.random,
    clock,
  };
}

/** Above 0. */
function readBound(given: Duration | undefined, name: string): Millis {
  if (given === undefined) return Infinity;
  const ms = readMillis(given, name);
  if (ms === 0) throw new TypeError(`${name} must be longer than 0`);
  return ms;
}
