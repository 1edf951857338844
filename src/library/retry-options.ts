import type { StrategyName } from '../core/backoff/strategies.ts';
import type { BackOff } from '../core/backoff/back-off.ts';
import type { Millis, Random } from '../core/scalars.ts';
import type { BackoffSpec } from './backoffs.ts';
import { resolveBackoff } from './backoffs.ts';
import type { Classification, Settled } from './classify.ts';
import { classify } from './classify.ts';
import { rejectUnknownOptions } from './unknown-options.ts';
import type { RetryClock } from './retry-clock.ts';
import { systemClock } from './retry-clock.ts';
import type { Duration } from './duration.ts';
import { parseMillis } from './duration.ts';
import { RetryBudget } from './retry-budget.ts';

/** Describes a retry before its delay starts. */
export interface RetryNotice<T> {
  /** Number of the attempt that has just ended, from 1. */
  readonly attempt: number;
  /** Its result. */
  readonly settled: Settled<T>;
  /** Milliseconds until the next attempt. */
  readonly delay: Millis;
  /** Source of the delay: the backoff strategy, or a `retryAfter` of the upstream. */
  readonly source: 'backoff' | 'hint';
}

/** Options of `retry`, named and with defaults as in the configuration. */
export interface RetryOptions<T> {
  /** Maximum number of attempts, the first one included: a whole number ≥ 1, or `Infinity`. Default: 4. */
  readonly attempts?: number | undefined;
  /** Delays between attempts: the name of a strategy, a name with options, or a strategy object. Default: `full-jitter`. */
  readonly backOff?: StrategyName | BackoffSpec | BackOff | undefined;
  /** Time for all attempts and delays together, above 0. Default: unlimited. */
  readonly timeout?: Duration | undefined;
  /** Absolute deadline on the clock of `performance.now()`, for instance that of an outer attempt. The earlier of this and `timeout` applies. */
  readonly deadline?: Millis | undefined;
  /** Time for each attempt, above 0. Default: unlimited. */
  readonly perTryTimeout?: Duration | undefined;
  /** Longest `retryAfter` that is waited for; a longer one ends the retries. Default: 60 s. */
  readonly maxRetryAfter?: Duration | undefined;
  /** Aborts the current attempt or delay at once. `retry` rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Decides whether a result is retried. Default: `classify`. If it throws, `retry` rejects with that error. */
  readonly classify?: ((settled: Settled<T>, attempt: number) => Classification) | undefined;
  /** Limits retries to a share of successes; to be shared by all callers of an upstream. Default: no budget. */
  readonly budget?: RetryBudget | undefined;
  /** Called before each delay. If it throws, `retry` rejects with that error. */
  readonly onRetry?: ((notice: RetryNotice<T>) => void) | undefined;
  /** Uniform on [0, 1). Default: `Math.random`. */
  readonly random?: Random | undefined;
  /** Default: `performance.now()` and the timers of this process. */
  readonly clock?: RetryClock | undefined;
}

/** Validated options with defaults filled in; durations in milliseconds. */
export interface ResolvedRetryOptions<T> {
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

const OPTION_NAMES = [
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

const DEFAULT_ATTEMPTS = 4;
const DEFAULT_MAX_RETRY_AFTER: Millis = 60_000;

/** @throws TypeError or RangeError with the problem: an ignored typo would be a retry that never happens */
export function resolveRetryOptions<T>(options: RetryOptions<T>): ResolvedRetryOptions<T> {
  rejectUnknownOptions(options, OPTION_NAMES, 'retry');
  const { attempts = DEFAULT_ATTEMPTS, backOff = 'full-jitter', deadline, clock = systemClock } = options;
  if (!(attempts === Infinity || (Number.isSafeInteger(attempts) && attempts >= 1))) {
    throw new RangeError(`attempts must be a whole number from 1, or Infinity, not ${String(attempts)}`);
  }
  if (deadline !== undefined && (typeof deadline !== 'number' || Number.isNaN(deadline))) {
    throw new TypeError('deadline must be a point on the clock of performance.now(), in milliseconds');
  }
  if (!(options.budget === undefined || options.budget instanceof RetryBudget)) {
    throw new TypeError('budget must be a shared RetryBudget: new RetryBudget({ ratio, burst })');
  }
  for (const name of ['classify', 'onRetry', 'random'] as const) {
    const given: unknown = options[name];
    if (given !== undefined && typeof given !== 'function') throw new TypeError(`${name} must be a function`);
  }
  const timeout = parseTimeout(options.timeout, 'timeout');
  return {
    attempts,
    backOff: resolveBackoff(backOff),
    deadline: Math.min(deadline ?? Infinity, clock.now() + timeout),
    perTryTimeout: parseTimeout(options.perTryTimeout, 'perTryTimeout'),
    maxRetryAfter:
      options.maxRetryAfter === undefined
        ? DEFAULT_MAX_RETRY_AFTER
        : parseMillis(options.maxRetryAfter, 'maxRetryAfter'),
    signal: options.signal,
    classify: options.classify ?? classify,
    budget: options.budget,
    onRetry: options.onRetry,
    random: options.random ?? Math.random,
    clock,
  };
}

/** Milliseconds above 0; `Infinity` if absent. */
function parseTimeout(given: Duration | undefined, name: string): Millis {
  if (given === undefined) return Infinity;
  const ms = parseMillis(given, name);
  if (ms === 0) throw new TypeError(`${name} must be longer than 0`);
  return ms;
}
