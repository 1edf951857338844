import { parseHttpDate } from './http-date.ts';
import { maxDefined, parseDecimal } from './hint-numbers.ts';
import { forEachValue } from './single-value-field.ts';
import type { Millis } from '../scalars.ts';
import { trimSpace } from '../http-semantics/list-field.ts';

/** The error of a Date, which is cut to the second, plus the time the response was in transit. */
const DATE_TOLERANCE: Millis = 1250;

/**
 * The present time by the upstream's clock, in epoch ms: its Date plus the Age that caches added (RFC 9111 §4.2.3). Returns
 * `wallClock` if the response has no usable Date.
 * @param headers names and values in turn, as received
 */
export function readServerTime(headers: readonly string[], wallClock: Millis): Millis {
  let date: Millis | undefined;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() === 'date') date ??= parseHttpDate(trimSpace(headers[i + 1] ?? ''), wallClock);
  }
  if (date === undefined) return wallClock;
  const sentAt = date + 1000 * readAge(headers);
  // Our clock is not cut to the second: if it agrees, it ends a hold exactly at a date that the client can read itself.
  return wallClock >= sentAt && wallClock < sentAt + DATE_TOLERANCE ? wallClock : sentAt;
}

/** How long a response has been in caches, in seconds (RFC 9111 §5.1); the largest of several values. */
export function readAge(headers: readonly string[]): number {
  let age = 0;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length !== 3 || name.toLowerCase() !== 'age') continue;
    forEachValue(headers[i + 1] ?? '', (value) => {
      age = maxDefined(age, parseDecimal(value)) ?? 0;
    });
  }
  return age;
}
