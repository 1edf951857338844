import type { Millis } from '../../core/scalars.ts';
import { parseDuration, formatDuration } from './unit-schemas.ts';
import type { ParseResult } from './text-codec.ts';
import { parseFailure, textCodec } from './text-codec.ts';

const DAY: Millis = 86_400_000;
const MAX_DAYS = 3650;

/** How long another system remembers something. It may exceed the longest timer. */
export const Ttl = textCodec<Millis>({
  expected: 'a time such as 24h or 45d',
  forms: [{ type: 'string', pattern: String.raw`^\d+(?:\.\d{1,4})?(?:ms|s|m|h|d)$` }],
  parse: parseTtl,
  format: formatTtl,
  isValue: (value) => typeof value === 'number',
});

/** "45d", or a duration above 0. */
export function parseTtl(input: string | number): ParseResult<Millis> {
  const [, days] = /^(\d+)d$/.exec(String(input)) ?? [];
  if (days !== undefined) {
    const count = Number(days);
    if (count === 0) return parseFailure('must be longer than 0');
    return count > MAX_DAYS ? parseFailure(`must be at most ${MAX_DAYS}d`) : { ok: true, value: count * DAY };
  }
  const reading = parseDuration(input);
  if (reading.ok) return reading.value === 0 ? parseFailure('must be longer than 0') : reading;
  const [, count, unit] = /^(\d+)\s*(days?|)$/i.exec(String(input)) ?? [];
  const suggestion = unit === '' ? `${count}h or ${count}d` : `${count}d`;
  return parseFailure('expected a time such as 24h or 45d', count === undefined ? reading.suggestion : suggestion);
}

/** In days where they divide it, else as a duration. */
export function formatTtl(millis: Millis): string {
  return millis >= DAY && millis % DAY === 0 ? `${millis / DAY}d` : formatDuration(millis);
}
