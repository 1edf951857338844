import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { readDuration, writeDuration } from './unit-schemas.ts';
import type { Reading } from './text-codec.ts';
import { misread, written } from './text-codec.ts';

const DAY: Millis = 86_400_000;
const LONGEST = 3650;

/** How long something is remembered elsewhere: nothing of ours waits for it, so it may be longer than any timer. */
export const Lifetime = written<Millis>({
  expected: 'a time such as 24h or 45d',
  forms: [{ type: 'string', pattern: String.raw`^\d+(?:\.\d{1,4})?(?:ms|s|m|h|d)$` }],
  read: readLifetime,
  write: (millis) => (millis >= DAY && millis % DAY === 0 ? `${millis / DAY}d` : writeDuration(millis)),
  holds: (value) => typeof value === 'number',
});

/** "45d", or a duration above 0. */
export function readLifetime(input: string | number): Reading<Millis> {
  const [, days] = /^(\d+)d$/.exec(String(input)) ?? [];
  if (days !== undefined) {
    const count = Number(days);
    if (count === 0) return misread('must be longer than 0');
    return count > LONGEST ? misread(`must be at most ${LONGEST}d`) : { ok: true, value: count * DAY };
  }
  const reading = readDuration(input);
  if (reading.ok) return reading.value === 0 ? misread('must be longer than 0') : reading;
  const [, count, unit] = /^(\d+)\s*(days?|)$/i.exec(String(input)) ?? [];
  const meant = unit === '' ? `${count}h or ${count}d` : `${count}d`;
  return misread('expected a time such as 24h or 45d', count === undefined ? reading.suggestion : meant);
}
