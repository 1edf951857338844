/** Strict decoding of signatures and timestamps. Node's own decoders skip what they do not know. */
import type { Millis } from '../../core/scalars.ts';
import { invalidSignature, type InvalidSignature } from './signature-types.ts';

export type SignatureEncoding = 'hex' | 'base64' | 'base64url';

const PATTERNS: Readonly<Record<SignatureEncoding, RegExp>> = {
  hex: /^[0-9a-f]+$/i,
  base64: /^[A-Za-z0-9+/]+={0,2}$/,
  base64url: /^[A-Za-z0-9_-]+={0,2}$/,
};

/** Undefined unless the text is the encoding of exactly `length` bytes. Base64 needs its padding, base64url does not. */
export function decodeSignature(text: string, encoding: SignatureEncoding, length: number): Buffer | undefined {
  const textLength = encoding === 'hex' ? 2 * length : 4 * Math.ceil(length / 3);
  if (text.length > textLength || !PATTERNS[encoding].test(text)) return undefined;
  if (text.length < textLength && encoding !== 'base64url') return undefined;
  const bytes = Buffer.from(text, encoding);
  return bytes.length === length ? bytes : undefined;
}

/** The unit of a timestamp. */
export type TimestampUnit = 's' | 'ms';

const UNIT_LENGTHS: Readonly<Record<TimestampUnit, Millis>> = { s: 1000, ms: 1 };

/** The largest time of a JavaScript date, in milliseconds, has 16 digits. */
const MAX_DIGITS: Readonly<Record<TimestampUnit, number>> = { s: 12, ms: 15 };

/**
 * Returns why a timestamp is invalid; undefined if it is valid. It consists of decimal digits alone: no sign, space, exponent, fraction or
 * leading zero. A signer cuts a fraction off, so the time of the comparison is cut off too.
 * @param tolerance how far it may be from `now`, in both directions
 * @param now milliseconds of the epoch
 */
export function checkTimestamp(
  text: string,
  unit: TimestampUnit,
  tolerance: Millis,
  now: Millis,
): InvalidSignature | undefined {
  if (text.length > MAX_DIGITS[unit] || !/^(?:0|[1-9]\d*)$/.test(text)) return invalidSignature('malformed');
  const length = UNIT_LENGTHS[unit];
  const age = (Math.floor(now / length) - Number(text)) * length;
  if (age > tolerance) return invalidSignature('too_old');
  return age < -tolerance ? invalidSignature('too_new') : undefined;
}
