import type { Millis } from '../core/exchange/attempt-outcome.ts';
import type { Settled } from './classify.ts';
import type { RetryClock } from './retry-clock.ts';

/** What an action is told. */
export interface Attempt {
  /** Counts from 1. */
  readonly attempt: number;
  /** Aborts when this attempt is to end: its time or the deadline is over, the caller has aborted, its value is not wanted. */
  readonly signal: AbortSignal;
  /** On the clock of `performance.now()`; `Infinity` where there is none. To be handed on to a `retry` within. */
  readonly deadline: Millis;
}

/** Ends at this point of the clock, with such an error. */
export interface Limit {
  readonly at: Millis;
  readonly error: () => Error;
}

export interface Attempted<T> {
  readonly settled: Settled<T>;
  /** Nobody wants what it came to: what it has open may be closed. */
  readonly discard: () => void;
}

/**
 * Runs one attempt to its end, or until its limit, whether or not it heeds its signal. Nothing of it is left then: no
 * timer, no listener, and no rejection that nobody handles.
 * @param signal the caller's, not aborted yet
 * @returns a promise that is rejected with the reason of `signal` when that aborts, and never else
 */
export function runAttempt<T>(
  action: (attempt: Attempt) => T | PromiseLike<T>,
  { attempt, deadline }: Pick<Attempt, 'attempt' | 'deadline'>,
  limit: Limit | undefined,
  signal: AbortSignal | undefined,
  clock: RetryClock,
): Promise<Attempted<T>> {
  return new Promise((resolve, reject) => {
    const own = new AbortController();
    const discard = (): void => own.abort(new DOMException('the attempt is over', 'AbortError'));
    let isOver = false;
    const end = (tell: () => void): void => {
      if (isOver) return;
      isOver = true;
      stopTimer?.();
      signal?.removeEventListener('abort', onAbort);
      tell();
    };
    const settle = (settled: Settled<T>): void => end(() => resolve({ settled, discard }));
    const onAbort = (): void =>
      end(() => {
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what the caller has aborted with, as fetch does
        reject(signal?.reason);
        own.abort(signal?.reason);
      });
    const onLimit = ({ error: make }: Limit): void => {
      const error = make();
      settle({ kind: 'error', error });
      own.abort(error);
    };
    const stopTimer = limit === undefined ? undefined : clock.wait(limit.at - clock.now(), () => onLimit(limit));
    signal?.addEventListener('abort', onAbort, { once: true });
    // Called here and now; what it throws is as what it rejects with.
    new Promise<T>((take) => {
      take(action({ attempt, signal: own.signal, deadline }));
    }).then(
      (value) => settle({ kind: 'value', value }),
      (error: unknown) => settle({ kind: 'error', error }),
    );
  });
}
