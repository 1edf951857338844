import type { Millis } from '../types.ts';
import { parseHttpDate, parseTimestamp } from './http-date.ts';
import { parseDecimal } from './numbers.ts';

/** `2s`, `1m30s`, `6m0s`, `120ms`: as Go writes a duration, and OpenAI its resets. */
const DURATION =
  /^(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?$/;

/**
 * How long until a quota is whole again. Of a number no convention says what it is: above 10¹² an epoch in ms, above 10⁹ one in
 * s, else seconds from now. A Date is cut to the second, so a point in time comes out up to 1 s late, never early.
 * @param sentAt epoch ms, when the answer says that it was made
 * @returns below 0 for what has passed; undefined when unparsable
 */
export function parseReset(value: string, sentAt: () => Millis): Millis | undefined {
  const number = parseDecimal(value);
  if (number !== undefined) {
    return number > 1e12 ? number - sentAt() : number > 1e9 ? number * 1000 - sentAt() : number * 1000;
  }
  const text = value.trim();
  const [whole, days = 0, hours = 0, minutes = 0, seconds = 0, millis = 0] = DURATION.exec(text) ?? [];
  if (whole !== undefined && whole !== '') {
    const toSeconds = ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
    return toSeconds * 1000 + Number(millis);
  }
  const date = parseTimestamp(text) ?? parseHttpDate(text, sentAt());
  return date === undefined ? undefined : date - sentAt();
}
