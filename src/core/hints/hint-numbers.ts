/**
 * Bounds for the numbers of an upstream. A response is untrusted text: a number outside these bounds is a mistake or an
 * attack, and no number is better than a wrong one.
 */
import type { Millis } from '../scalars.ts';

/** The longest "not before" that is accepted from an upstream. It may ask for more; after this it is tried again. */
export const MAX_HINTED_DELAY: Millis = 300_000;

/** The longest delay that is accepted unchanged, and the longest window: a month's quota. */
export const MAX_DELAY: Millis = 31 * 86_400_000;

/** The largest Integer of RFC 9651 §3.3.1. Upstreams that mean "no limit" send 2⁶⁴ − 1. */
const MAX_COUNT = 999_999_999_999_999;

const DECIMAL = /^[ \t]*(\d+(?:\.\d+)?)[ \t]*$/;

/** A plain number ≥ 0, decimals tolerated; undefined for a sign, an exponent, a unit or anything else. */
export function parseDecimal(value: string): number | undefined {
  const digits = DECIMAL.exec(value)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/**
 * `delay` in whole milliseconds (64.57 s times 1000 is not 64 570); undefined below 0 and for NaN. A longer one than MAX_DELAY
 * becomes MAX_DELAY: a field that asks for a year asks for a long wait, not for none.
 */
export function clampDelay(delay: Millis): Millis | undefined {
  return delay >= 0 ? Math.round(Math.min(delay, MAX_DELAY)) : undefined;
}

/** As `clampDelay`, without the upper bound. */
export function roundDelay(delay: Millis): Millis | undefined {
  return delay >= 0 ? Math.round(delay) : undefined;
}

/** A whole number of requests in [0, 10¹⁵): half a request cannot be sent, so fractions are dropped. Undefined below 0. */
export function clampCount(count: number | undefined): number | undefined {
  return count !== undefined && count >= 0 ? Math.floor(Math.min(count, MAX_COUNT)) : undefined;
}

/** The larger of the defined values; undefined if neither is defined. */
export function maxDefined(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || (b !== undefined && b > a) ? b : a;
}

/** The smaller of the defined values; undefined if neither is defined. */
export function minDefined(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a;
}
