import { inspect } from 'node:util';
import { DURATION } from '../config/values/quantities.ts';
import { parseDelay } from '../core/hints/parse-delay.ts';
import type { Millis } from '../core/exchange/attempt-outcome.ts';
import type { Duration } from './duration.ts';
import { readWait } from './duration.ts';

/** What an attempt came to. */
export type Settled<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'error'; readonly error: unknown };

/** Another attempt, or none; or another, and not before so long, which may be `Infinity`. */
export type Classification = 'retry' | 'stop' | { readonly retryAfter: Duration };

/**
 * What `retry` goes by unless told otherwise. Any value is what was wanted. Of errors,
 * - an AbortError stops: somebody wished it to end;
 * - a programming error (TypeError, ReferenceError, RangeError, SyntaxError and their kin, a failed assertion) stops, but
 *   for the TypeError that `fetch` makes of a connection that failed;
 * - one with a `retryAfter` is retried, and not before that: milliseconds; or text, such as `2s` or what a Retry-After
 *   header says;
 * - one with a `status` or `statusCode` from 400 to 499 stops, but for 408, 425 and 429: the answer would be the same;
 * - any other is retried.
 */
export function classify(settled: Settled<unknown>): Classification {
  if (settled.kind === 'value') return 'stop';
  const { error } = settled;
  if (!(error instanceof Error)) return 'retry';
  if (error.name === 'AbortError' || isProgrammingError(error)) return 'stop';
  const retryAfter = readHint(fieldOf(error, 'retryAfter'));
  if (retryAfter !== undefined) return { retryAfter };
  const status = fieldOf(error, 'status') ?? fieldOf(error, 'statusCode');
  return typeof status === 'number' && isClientError(status) ? 'stop' : 'retry';
}

const PROGRAMMING_ERRORS = [TypeError, ReferenceError, RangeError, SyntaxError, EvalError, URIError];

function isProgrammingError(error: Error): boolean {
  if (fieldOf(error, 'code') === 'ERR_ASSERTION') return true;
  return PROGRAMMING_ERRORS.some((kind) => error instanceof kind) && !isFailedFetch(error);
}

/**
 * The Fetch Standard has a failed connection told as a TypeError; Node 24 keeps what failed as its cause, with a code. Of what
 * is no URL, that is a TypeError as well.
 */
function isFailedFetch(error: Error): boolean {
  if (!(error instanceof TypeError && error.cause instanceof Error)) return false;
  return typeof fieldOf(error.cause, 'code') === 'string' && !isProgrammingError(error.cause);
}

/**
 * What cannot be read asks for nothing: the error is what counts. What is too long for anybody is kept as it is: to forget
 * it would be to come back at once.
 */
function readHint(told: unknown): Millis | undefined {
  const delay = typeof told === 'string' ? readText(told) : told;
  return typeof delay === 'number' && delay >= 0 ? delay : undefined;
}

function readText(told: string): Millis | undefined {
  return DURATION.test(told) ? readWait(told, 'retryAfter') : parseDelay(told, () => Date.now());
}

/**
 * What a classifier of somebody's own has answered, once that is known to be an answer.
 * @throws TypeError for anything else: to take it for one or the other would be to guess whether to send again
 */
export function readClassification(answered: unknown): Classification {
  if (answered === 'retry' || answered === 'stop') return answered;
  if (typeof answered === 'object' && answered !== null && 'retryAfter' in answered) {
    const { retryAfter } = answered;
    if (typeof retryAfter === 'number' || typeof retryAfter === 'string') return { retryAfter };
  }
  const told = answered instanceof Promise ? 'a promise: it is not waited for' : inspect(answered, { depth: 1 });
  throw new TypeError(`classify must return 'retry', 'stop' or {retryAfter}, not ${told}`);
}

/** Request timeout, too early and too many requests are worth another attempt. */
function isClientError(status: number): boolean {
  return status >= 400 && status <= 499 && status !== 408 && status !== 425 && status !== 429;
}

function fieldOf(error: Error, name: string): unknown {
  return Reflect.get(error, name);
}
