import { DURATION, readDuration } from '../config/values/quantities.ts';
import type { Millis } from '../core/exchange/attempt-outcome.ts';

/** A length of time: milliseconds, or as the configuration writes it: `250ms`, `2s`, `1m`, `24h`. */
export type Duration = Millis | string;

/** Node fires a timer that is longer at once. */
export const LONGEST: Millis = 2 ** 31 - 1;

/**
 * @param name of the option, for the message
 * @throws TypeError for what is no duration, and for one below 0 or beyond 24 days
 */
export function readMillis(given: Duration, name: string): Millis {
  if (typeof given === 'number') {
    if (given >= 0 && given <= LONGEST) return given;
    throw new TypeError(`${name} must be from 0 to ${LONGEST} milliseconds, not ${given}`);
  }
  const reading = readDuration(given);
  if (reading.ok) return reading.value;
  const near = reading.suggestion === undefined ? '' : ` (did you mean ${reading.suggestion}?)`;
  throw new TypeError(`${name}: ${reading.message}${near}`);
}

/**
 * A wait that somebody asks for, which may be longer than anybody waits: `Infinity` where it is text.
 * @throws TypeError for what is no duration, and for one below 0
 */
export function readWait(given: Duration, name: string): Millis {
  if (typeof given === 'number' && given >= 0) return given;
  if (typeof given === 'string' && DURATION.test(given) && !readDuration(given).ok) return Infinity;
  return readMillis(given, name);
}
