/** An action, again and again until it is done: the decisions are those of the proxy, the timers are here. */
import type { Millis } from '../core/exchange/attempt-outcome.ts';
import type { Attempt, Limit } from './run-attempt.ts';
import { runAttempt } from './run-attempt.ts';
import type { Classification, Settled } from './classify.ts';
import { readClassification } from './classify.ts';
import type { RetryClock } from './retry-clock.ts';
import { readWait } from './duration.ts';
import type { RetryOptions, RetryTerms } from './retry-options.ts';
import { readOptions } from './retry-options.ts';

/** Why there was no further attempt. */
export type RetryEnd = 'stopped' | 'attempts_exhausted' | 'deadline' | 'budget_exhausted' | 'retry_after_too_long';

export interface RetryFailure {
  /** Attempts that were made, ≥ 1. */
  readonly attempts: number;
  readonly end: RetryEnd;
}

/** Beside the errors and not on them: they are the action's own, and may be frozen. */
const failures = new WeakMap<object, RetryFailure>();

/** What is known of an error that `retry` has rejected with; undefined for any other. */
export function failureOf(error: unknown): RetryFailure | undefined {
  return typeof error === 'object' && error !== null ? failures.get(error) : undefined;
}

/**
 * Calls the action, and calls it again where what it came to is worth another attempt, until it is done, may not be tried
 * again, or is out of time. The first attempt is made at once.
 *
 * A wait that would end beyond the deadline is not begun. An attempt that is out of time ends, whether or not it heeds its
 * signal, with a `TimeoutError`, and that may be retried. Nothing is left behind: no timer, no listener on the signal, no
 * rejection without a handler.
 * @returns the value that was settled on: also one that called for a retry and cannot have it
 * @throws the last error, as the action threw it (see `failureOf`); the reason of the signal when that aborts; a TypeError
 * or RangeError, before anything is tried, for options that make no sense
 */
export async function retry<T>(
  action: (attempt: Attempt) => T | PromiseLike<T>,
  options: RetryOptions<T> = {},
): Promise<T> {
  const terms = readOptions(options);
  const { deadline, signal, clock } = terms;
  signal?.throwIfAborted();
  if (clock.now() >= deadline) throw timeoutError('the deadline had passed before the first attempt');
  let memory = 0;
  for (let attempt = 1; ; attempt += 1) {
    const limit = limitOf(terms);
    const { settled, discard } = await runAttempt(action, { attempt, deadline }, limit, signal, clock);
    const next = decide(settled, attempt, memory, terms);
    if (next.kind === 'end') {
      if (settled.kind === 'value') {
        if (next.why === 'stopped') terms.budget?.earn();
        return settled.value;
      }
      note(settled.error, { attempts: attempt, end: next.why });
      throw settled.error;
    }
    memory = next.memory;
    try {
      terms.onRetry?.({ attempt, settled, delay: next.delay, source: next.source });
      if (settled.kind === 'value') discard();
      await sleep(next.delay, clock, signal);
      if (clock.now() >= deadline) throw late(settled, attempt);
    } catch (error) {
      terms.budget?.refund();
      throw error;
    }
  }
}

type Next =
  | { readonly kind: 'end'; readonly why: RetryEnd }
  | { readonly kind: 'wait'; readonly delay: Millis; readonly source: 'backoff' | 'hint'; readonly memory: number };

/** All conditions, in the order in which they are told; the budget last, because it is spent. */
function decide<T>(settled: Settled<T>, attempt: number, memory: number, terms: RetryTerms<T>): Next {
  const classified = readClassification(terms.classify(settled, attempt));
  if (classified === 'stop') return { kind: 'end', why: 'stopped' };
  if (attempt >= terms.attempts) return { kind: 'end', why: 'attempts_exhausted' };
  const step = terms.backOff.next(attempt - 1, memory, terms.random);
  if (step === undefined) return { kind: 'end', why: 'attempts_exhausted' };
  // A strategy of somebody's own may give anything, and a timer takes NaN for 1.
  if (typeof step.delay !== 'number' || !(step.delay >= 0)) {
    throw new TypeError(`backOff must give delays from 0, not ${String(step.delay)}`);
  }
  const hinted = hintOf(classified);
  if (hinted !== undefined && hinted > terms.maxRetryAfter) return { kind: 'end', why: 'retry_after_too_long' };
  // As the proxy has it: those who were told the same do not come back in the same moment.
  const delay = hinted === undefined ? step.delay : hinted + terms.random() * Math.min(hinted / 10, 1000);
  if (terms.clock.now() + delay >= terms.deadline) return { kind: 'end', why: 'deadline' };
  if (terms.budget?.spend() === false) return { kind: 'end', why: 'budget_exhausted' };
  return { kind: 'wait', delay, source: hinted === undefined ? 'backoff' : 'hint', memory: step.memory };
}

/** One of 0 asks for nothing. */
function hintOf(classified: Classification): Millis | undefined {
  if (typeof classified === 'string') return undefined;
  return readWait(classified.retryAfter, 'retryAfter') || undefined;
}

/** What ends the next attempt first. */
function limitOf<T>({ perTryTimeout, deadline, clock }: RetryTerms<T>): Limit | undefined {
  const now = clock.now();
  const byItself = now + perTryTimeout;
  if (byItself < deadline) {
    return { at: byItself, error: () => timeoutError(`the attempt took longer than ${perTryTimeout} ms`) };
  }
  if (deadline === Infinity) return undefined;
  return { at: deadline, error: () => timeoutError('the deadline has passed') };
}

/** It woke later than it should have. */
function late(settled: Settled<unknown>, attempts: number): unknown {
  const error = settled.kind === 'error' ? settled.error : timeoutError('the deadline has passed');
  note(error, { attempts, end: 'deadline' });
  return error;
}

/** As `AbortSignal.timeout` aborts with. */
function timeoutError(message: string): DOMException {
  return new DOMException(message, 'TimeoutError');
}

/** Rejects at once with the reason of the signal when that aborts. */
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

function note(error: unknown, failure: RetryFailure): void {
  if (typeof error === 'object' && error !== null) failures.set(error, failure);
}
