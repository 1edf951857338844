import type { Millis } from '../scalars.ts';
import { parseHttpDate, parseTimestamp } from './http-date.ts';
import { parseDecimal } from './hint-numbers.ts';
import { trimSpace } from '../http-semantics/list-field.ts';

const UNITS: Readonly<Record<string, Millis>> = {
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  '\u03BCs': 1e-3, // the Greek letter; the one above is the micro sign
  ns: 1e-6,
};
const DURATION_PART =
  /[ \t]*(\d+(?:\.\d+)?)[ \t]*(?:(ms|us|µs|ns)|([dhms])(?:(?<=d)ays?|(?<=h)(?:ou)?rs?|(?<=m)in(?:ute)?s?|(?<=s)ec(?:ond)?s?)?)(?![a-z])/iy;

/**
 * As Go writes a duration, and OpenAI its resets: `2s`, `1m30s`, `6m0s`, `120ms`; with spaces, capitals and whole words too, as
 * people do: `1M 30S`, `40 seconds`. Undefined for anything else.
 */
function parseDuration(text: string): Millis | undefined {
  let total: Millis | undefined;
  let at = 0;
  while (at < text.length) {
    DURATION_PART.lastIndex = at;
    const [part, count, small, large] = DURATION_PART.exec(text) ?? [];
    if (part === undefined) return undefined;
    total = (total ?? 0) + Number(count) * (UNITS[(small ?? large ?? '').toLowerCase()] ?? Number.NaN);
    at += part.length;
  }
  return total;
}

/**
 * The delay that a value states: seconds from now, decimals tolerated; a duration with units; an HTTP-date, or a date of
 * RFC 3339. A Date is cut to the second, so a point in time may be up to 1 s late, never early.
 * @param now by the upstream's clock, in epoch ms
 * @returns a delay of any length, below 0 for a time in the past; undefined if it cannot be parsed
 */
export function parseDelay(value: string, now: () => Millis): Millis | undefined {
  const seconds = parseDecimal(value);
  if (seconds !== undefined) return seconds * 1000;
  const text = trimSpace(value);
  const duration = parseDuration(text);
  if (duration !== undefined) return duration;
  const date = parseTimestamp(text) ?? parseHttpDate(text, now());
  return date === undefined ? undefined : date - now();
}

/**
 * The time until a quota is whole again. A number may also be an epoch. No convention says which: above 10⁹ it is one in
 * seconds, above 10¹² in milliseconds, above 10¹⁴ in microseconds, above 10¹⁷ in nanoseconds.
 */
export function parseReset(value: string, now: () => Millis): Millis | undefined {
  const number = parseDecimal(value);
  return number === undefined || number <= 1e9 ? parseDelay(value, now) : epochMillis(number) - now();
}

function epochMillis(number: number): Millis {
  if (number > 1e17) return number / 1e6;
  if (number > 1e14) return number / 1000;
  return number > 1e12 ? number : number * 1000;
}
