import { DURATION_PATTERN, parseDuration } from '../config/values/quantities.ts';
import type { Millis } from '../core/scalars.ts';

/** A duration: milliseconds as a number, or a string as in the configuration: `250ms`, `2s`, `1m`, `24h`. */
export type Duration = Millis | string;

/** The longest timer of Node, 24.8 days. A longer one fires at once. */
export const MAX_TIMER_MS: Millis = 2 ** 31 - 1;

/**
 * Converts a duration to milliseconds.
 * @param name the option, for the message
 * @throws TypeError for an invalid duration, a negative one, or one beyond 24 days
 */
export function parseMillis(given: Duration, name: string): Millis {
  if (typeof given === 'number') {
    if (given >= 0 && given <= MAX_TIMER_MS) return given;
    throw new TypeError(`${name} must be from 0 to ${MAX_TIMER_MS} milliseconds, not ${given}`);
  }
  const reading = parseDuration(given);
  if (reading.ok) return reading.value;
  const near = reading.suggestion === undefined ? '' : ` (did you mean ${reading.suggestion}?)`;
  throw new TypeError(`${name}: ${reading.message}${near}`);
}

/**
 * Converts a `retryAfter` to milliseconds. A string beyond the longest duration becomes `Infinity`.
 * @throws TypeError for an invalid or negative duration
 */
export function parseRetryAfter(given: Duration, name: string): Millis {
  if (typeof given === 'number' && given >= 0) return given;
  if (typeof given === 'string' && DURATION_PATTERN.test(given) && !parseDuration(given).ok) return Infinity;
  return parseMillis(given, name);
}
