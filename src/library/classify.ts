import { inspect } from 'node:util';
import { DURATION_PATTERN } from '../config/values/quantities.ts';
import { parseDelay } from '../core/hints/parse-delay.ts';
import type { Millis } from '../core/scalars.ts';
import type { Duration } from './duration.ts';
import { parseRetryAfter } from './duration.ts';

/** The result of an attempt: its value, or the error that it threw. */
export type Settled<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'error'; readonly error: unknown };

/**
 * `retry`: try again after the backoff. `stop`: this result is final. `retryAfter`: try again, and wait at least this long
 * (`Infinity` is allowed and ends the retries) instead of the backoff.
 */
export type Classification = 'retry' | 'stop' | { readonly retryAfter: Duration };

/**
 * The default classifier of `retry`. Every value stops. Of the errors,
 * - an AbortError stops;
 * - a programming error (TypeError, ReferenceError, RangeError, SyntaxError, EvalError, URIError, a failed assertion) stops,
 *   except the TypeError with which `fetch` reports a failed connection;
 * - an error with a `retryAfter` field is retried after that time: milliseconds, a duration such as `2s`, or the value of a
 *   Retry-After header;
 * - an error with a `status` or `statusCode` from 400 to 499 stops, except 408, 425 and 429;
 * - any other error is retried.
 */
export function classify(settled: Settled<unknown>): Classification {
  if (settled.kind === 'value') return 'stop';
  const { error } = settled;
  if (!(error instanceof Error)) return 'retry';
  if (error.name === 'AbortError' || isProgrammingError(error)) return 'stop';
  const retryAfter = parseRetryAfterField(fieldOf(error, 'retryAfter'));
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
 * The Fetch Standard reports a failed connection as a TypeError. Node 24 adds the network error, which has a code, as its cause.
 * For an invalid URL the cause is a TypeError too, so it counts as a programming error.
 */
function isFailedFetch(error: Error): boolean {
  if (!(error instanceof TypeError && error.cause instanceof Error)) return false;
  return typeof fieldOf(error.cause, 'code') === 'string' && !isProgrammingError(error.cause);
}

/**
 * Undefined for a value that cannot be read: the rest of the error decides then. A value beyond all limits is kept, because
 * ignoring it would mean to retry at once.
 */
function parseRetryAfterField(value: unknown): Millis | undefined {
  const delay = typeof value === 'string' ? parseRetryAfterText(value) : value;
  return typeof delay === 'number' && delay >= 0 ? delay : undefined;
}

function parseRetryAfterText(text: string): Millis | undefined {
  return DURATION_PATTERN.test(text) ? parseRetryAfter(text, 'retryAfter') : parseDelay(text, () => Date.now());
}

/**
 * Validates the result of a caller's own classifier.
 * @throws TypeError for anything else: a guess could send a request twice
 */
export function validateClassification(value: unknown): Classification {
  if (value === 'retry' || value === 'stop') return value;
  if (typeof value === 'object' && value !== null && 'retryAfter' in value) {
    const { retryAfter } = value;
    if (typeof retryAfter === 'number' || typeof retryAfter === 'string') return { retryAfter };
  }
  const description = value instanceof Promise ? 'a promise: it is not waited for' : inspect(value, { depth: 1 });
  throw new TypeError(`classify must return 'retry', 'stop' or {retryAfter}, not ${description}`);
}

/** 408 (Request Timeout), 425 (Too Early) and 429 (Too Many Requests) are worth another attempt. */
function isClientError(status: number): boolean {
  return status >= 400 && status <= 499 && status !== 408 && status !== 425 && status !== 429;
}

function fieldOf(error: Error, name: string): unknown {
  return Reflect.get(error, name);
}
