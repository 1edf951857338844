/**
 * What an upstream's numbers may be. An answer is somebody else's text: a figure outside these bounds is a mistake or
 * an attack, and no figure is better than a wrong one.
 */
import type { Millis } from '../exchange/attempt-outcome.ts';

/** The longest an upstream is believed when it says "not before". It may ask for more; after this it is asked again. */
export const MAX_HINT: Millis = 300_000;

/** The longest delay that is taken as it stands, and the longest window: a month's quota. */
export const LONGEST: Millis = 31 * 86_400_000;

/** The largest Integer of RFC 9651 §3.3.1. Upstreams that mean "no limit" send 2⁶⁴ − 1. */
const MOST = 999_999_999_999_999;

const DECIMAL = /^[ \t]*(\d+(?:\.\d+)?)[ \t]*$/;

/** A plain number ≥ 0, decimals tolerated; undefined for a sign, an exponent, a unit or anything else. */
export function parseDecimal(value: string): number | undefined {
  const digits = DECIMAL.exec(value)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/**
 * `delay` in whole milliseconds (64.57 s times 1000 is not 64 570); undefined below 0 and for NaN. A longer one than LONGEST is
 * that: whoever asks for a year asks for a long wait, and not for none.
 */
export function plausibleDelay(delay: Millis): Millis | undefined {
  return delay >= 0 ? Math.round(Math.min(delay, LONGEST)) : undefined;
}

/** The same of any length. */
export function anyDelay(delay: Millis): Millis | undefined {
  return delay >= 0 ? Math.round(delay) : undefined;
}

/** Whole requests in [0, 10¹⁵), at most: half a request cannot be sent, so fractions are dropped. Undefined below 0. */
export function plausibleCount(count: number | undefined): number | undefined {
  return count !== undefined && count >= 0 ? Math.floor(Math.min(count, MOST)) : undefined;
}

/** The larger of what is told; undefined only when neither is. */
export function larger(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || (b !== undefined && b > a) ? b : a;
}

/** The smaller of what is told; undefined only when neither is. */
export function smaller(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a;
}
