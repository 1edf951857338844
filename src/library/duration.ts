import { DURATION_PATTERN, parseDuration } from '../config/values/quantities.ts';
import type { Millis } from '../core/scalars.ts';
import { LONGEST_TIMER } from '../http/longest-timer.ts';

/** A duration: milliseconds as a number, or a string as in the configuration: `250ms`, `2s`, `1m`, `24h`. */
export type Duration = Millis | string;

/**
 * Converts a duration to milliseconds.
 * @param name the option, for the message
 * @throws TypeError for an invalid duration, a negative one, or one beyond 24 days
 */
export function parseMillis(given: Duration, name: string): Millis {
  if (typeof given === 'number') {
    if (given >= 0 && given <= LONGEST_TIMER) return given;
    throw new TypeError(`${name} must be from 0 to ${LONGEST_TIMER} milliseconds, not ${given}`);
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
