/** Retries an action by the rules of the proxy. */
import { jitterAboveHint } from '../core/retry/hinted-delay.ts';
import type { Millis } from '../core/scalars.ts';
import type { Attempt, AttemptTimeout } from './run-attempt.ts';
import { runAttempt } from './run-attempt.ts';
import type { Classification, Settled } from './classify.ts';
import { validateClassification } from './classify.ts';
import type { RetryClock } from './retry-clock.ts';
import { parseRetryAfter } from './duration.ts';
import type { RetryOptions, ResolvedRetryOptions } from './retry-options.ts';
import { resolveRetryOptions } from './retry-options.ts';

/**
 * Why there was no further attempt. `stopped`: the classifier returned `stop`. `attempts_exhausted`: all attempts are used, or
 * the strategy gave up. `deadline`: the next delay would end after the deadline. `budget_exhausted`: the budget had no token.
 * `retry_after_too_long`: the upstream asked for more than `maxRetryAfter`.
 */
export type RetryEnd = 'stopped' | 'attempts_exhausted' | 'deadline' | 'budget_exhausted' | 'retry_after_too_long';

export interface RetryFailure {
  /** Number of attempts made, ≥ 1. */
  readonly attempts: number;
  readonly end: RetryEnd;
}

/** Kept apart from the errors, which belong to the action and may be frozen. */
const failures = new WeakMap<object, RetryFailure>();

/** Returns the details of an error with which `retry` has rejected; undefined for any other value. */
export function failureOf(error: unknown): RetryFailure | undefined {
  return typeof error === 'object' && error !== null ? failures.get(error) : undefined;
}

/**
 * Calls the action until its result is final, or until attempts, time or budget run out. The first attempt starts at once.
 *
 * A delay that would end after the deadline does not start. An attempt that exceeds its time ends with a `TimeoutError`, whether
 * or not the action observes its signal, and may be retried. No timer, signal listener or unhandled rejection is left behind.
 * @returns the last value, including one that the classifier wanted to retry and that could not be retried
 * @throws the last error of the action, unchanged (see `failureOf`); the reason of `signal` if it aborts; a `TimeoutError` if the
 * deadline has passed before the first attempt; a TypeError or RangeError for invalid options, before the first attempt
 */
export async function retry<T>(
  action: (attempt: Attempt) => T | PromiseLike<T>,
  options: RetryOptions<T> = {},
): Promise<T> {
  const resolved = resolveRetryOptions(options);
  const { deadline, signal, clock } = resolved;
  signal?.throwIfAborted();
  if (clock.now() >= deadline) throw timeoutError('the deadline had passed before the first attempt');
  let memory = 0;
  for (let attempt = 1; ; attempt += 1) {
    const timeout = nextAttemptTimeout(resolved);
    const { settled, discard } = await runAttempt(action, { attempt, deadline }, timeout, signal, clock);
    const next = decideNext(settled, attempt, memory, resolved);
    if (next.kind === 'end') {
      if (settled.kind === 'value') {
        if (next.why === 'stopped') resolved.budget?.earn();
        return settled.value;
      }
      recordFailure(settled.error, { attempts: attempt, end: next.why });
      throw settled.error;
    }
    memory = next.memory;
    try {
      resolved.onRetry?.({ attempt, settled, delay: next.delay, source: next.source });
      if (settled.kind === 'value') discard();
      await sleep(next.delay, clock, signal);
      if (clock.now() >= deadline) throw deadlineError(settled, attempt);
    } catch (error) {
      resolved.budget?.refund();
      throw error;
    }
  }
}

type NextStep =
  | { readonly kind: 'end'; readonly why: RetryEnd }
  | { readonly kind: 'wait'; readonly delay: Millis; readonly source: 'backoff' | 'hint'; readonly memory: number };

/** All conditions, in the order in which they are reported. The budget comes last, because the check takes a token. */
function decideNext<T>(
  settled: Settled<T>,
  attempt: number,
  memory: number,
  options: ResolvedRetryOptions<T>,
): NextStep {
  const classified = validateClassification(options.classify(settled, attempt));
  if (classified === 'stop') return { kind: 'end', why: 'stopped' };
  if (attempt >= options.attempts) return { kind: 'end', why: 'attempts_exhausted' };
  const step = options.backOff.next(attempt - 1, memory, options.random);
  if (step === undefined) return { kind: 'end', why: 'attempts_exhausted' };
  // A caller's own strategy may return anything, and a timer takes NaN for 1.
  if (typeof step.delay !== 'number' || !(step.delay >= 0)) {
    throw new TypeError(`backOff must give delays from 0, not ${String(step.delay)}`);
  }
  const retryAfterMs = retryAfterOf(classified);
  if (retryAfterMs !== undefined && retryAfterMs > options.maxRetryAfter) {
    return { kind: 'end', why: 'retry_after_too_long' };
  }
  const delay = retryAfterMs === undefined ? step.delay : jitterAboveHint(retryAfterMs, options.random);
  if (options.clock.now() + delay >= options.deadline) return { kind: 'end', why: 'deadline' };
  if (options.budget?.spend() === false) return { kind: 'end', why: 'budget_exhausted' };
  return { kind: 'wait', delay, source: retryAfterMs === undefined ? 'backoff' : 'hint', memory: step.memory };
}

/** A `retryAfter` of 0 counts as none. */
function retryAfterOf(classified: Classification): Millis | undefined {
  if (typeof classified === 'string') return undefined;
  return parseRetryAfter(classified.retryAfter, 'retryAfter') || undefined;
}

/** The end of the next attempt: `perTryTimeout` or the deadline, whichever is earlier. Undefined: unlimited. */
function nextAttemptTimeout<T>({
  perTryTimeout,
  deadline,
  clock,
}: ResolvedRetryOptions<T>): AttemptTimeout | undefined {
  const now = clock.now();
  const perTryEnd = now + perTryTimeout;
  if (perTryEnd < deadline) {
    return { at: perTryEnd, error: () => timeoutError(`the attempt took longer than ${perTryTimeout} ms`) };
  }
  if (deadline === Infinity) return undefined;
  return { at: deadline, error: () => timeoutError('the deadline has passed') };
}

/** For a delay whose timer fired too late. */
function deadlineError(settled: Settled<unknown>, attempts: number): unknown {
  const error = settled.kind === 'error' ? settled.error : timeoutError('the deadline has passed');
  recordFailure(error, { attempts, end: 'deadline' });
  return error;
}

/** The same error as that of `AbortSignal.timeout`. */
function timeoutError(message: string): DOMException {
  return new DOMException(message, 'TimeoutError');
}

/** Resolves after `ms`; rejects with the reason of the signal as soon as it aborts. */
function sleep(ms: Millis, clock: RetryClock, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      stopTimer();
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what the caller has aborted with, as fetch does
      reject(signal?.reason);
    };
    const stopTimer = clock.wait(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

function recordFailure(error: unknown, failure: RetryFailure): void {
  if (typeof error === 'object' && error !== null) failures.set(error, failure);
}
