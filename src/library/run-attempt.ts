import type { Millis } from '../core/scalars.ts';
import type { Settled } from './classify.ts';
import type { RetryClock } from './retry-clock.ts';

/** Argument of the action. */
export interface Attempt {
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** Aborts when the attempt must end: at its timeout or the deadline, when the caller aborts, or when its value is discarded. */
  readonly signal: AbortSignal;
  /** Deadline of the whole `retry` on the clock of `performance.now()`; `Infinity` if there is none. Pass it to a nested `retry`. */
  readonly deadline: Millis;
}

/** The time at which the attempt ends, on the clock of `RetryClock`, and the error for it. */
export interface AttemptTimeout {
  readonly at: Millis;
  readonly error: () => Error;
}

export interface AttemptResult<T> {
  readonly settled: Settled<T>;
  /** Aborts the signal of a finished attempt, so that the action can release what its value holds. */
  readonly discard: () => void;
}

/**
 * Runs one attempt until it settles or times out, whether or not the action observes its signal. Leaves no timer, listener or
 * unhandled rejection behind.
 * @param signal the caller's, not aborted yet
 * @returns rejects only if `signal` aborts, with its reason
 */
export function runAttempt<T>(
  action: (attempt: Attempt) => T | PromiseLike<T>,
  { attempt, deadline }: Pick<Attempt, 'attempt' | 'deadline'>,
  timeout: AttemptTimeout | undefined,
  signal: AbortSignal | undefined,
  clock: RetryClock,
): Promise<AttemptResult<T>> {
  return new Promise((resolve, reject) => {
    const controller = new AbortController();
    const discard = (): void => controller.abort(new DOMException('the attempt is over', 'AbortError'));
    let isOver = false;
    const end = (settlePromise: () => void): void => {
      if (isOver) return;
      isOver = true;
      stopTimer?.();
      signal?.removeEventListener('abort', onAbort);
      settlePromise();
    };
    const settle = (settled: Settled<T>): void => end(() => resolve({ settled, discard }));
    const onAbort = (): void =>
      end(() => {
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what the caller has aborted with, as fetch does
        reject(signal?.reason);
        controller.abort(signal?.reason);
      });
    const onTimeout = ({ error: createError }: AttemptTimeout): void => {
      const error = createError();
      settle({ kind: 'error', error });
      controller.abort(error);
    };
    const stopTimer =
      timeout === undefined ? undefined : clock.wait(timeout.at - clock.now(), () => onTimeout(timeout));
    signal?.addEventListener('abort', onAbort, { once: true });
    // Calls the action synchronously, and treats a thrown error like a rejection.
    new Promise<T>((take) => {
      take(action({ attempt, signal: controller.signal, deadline }));
    }).then(
      (value) => settle({ kind: 'value', value }),
      (error: unknown) => settle({ kind: 'error', error }),
    );
  });
}
