/** The parts of the name of a write, and the id that operators see. Each character of a name is one byte (latin1). */

/** Bytes of the digest of all that names a write. */
export const NAME_DIGEST = 16;
/** Bytes of the digest of its key alone, which follow. They find the writes of a key, whatever their accounts and targets. */
export const KEY_DIGEST = 8;

/** Bytes of a name in an id: among 100 000 writes, the probability that two have the same id is below 1 in 10⁹. */
const ID_BYTES = 8;
/** Bytes of the digest of a credential in an id, if several writes have one name. */
const CREDENTIAL_BYTES = 4;

const ID = /^([\da-f]+)(?:-([\da-f]+))?$/;
/** Hexadecimal digits that an operator has to type at least. */
const MIN_DIGITS = 8;

/** The id of all writes of this name: it tells nothing about key, account or target. */
export function idOfName(name: string): string {
  return toHex(name.slice(0, ID_BYTES));
}

/** Names the write of kept responses. */
export function responseWriteOf(name: string): string {
  return toHex(name.slice(0, NAME_DIGEST));
}

/** Adds what tells writes of one name apart. @param credential as in `WriteIdentity` */
export function withCredential(id: string, credential: number): string {
  return `${id}-${credentialDigits(credential)}`;
}

export function hasKeyDigest(name: string, digest: string): boolean {
  return name.endsWith(digest);
}

/** The writes that have an id, or an id that begins with what is given. */
export interface WriteIdPattern {
  matchesName(name: string): boolean;
  matchesCredential(credential: number): boolean;
  /** What the name begins with, in hexadecimal digits. */
  readonly digits: string;
  /** All digits are given: names with the same ones are not expected. */
  readonly isWhole: boolean;
}

/** @returns undefined if the text is not the beginning of an id with at least eight digits */
export function parseWriteId(text: string): WriteIdPattern | undefined {
  const match = ID.exec(text.toLowerCase());
  const [digits = '', credential = ''] = match?.slice(1) ?? [];
  if (digits.length < MIN_DIGITS || digits.length > 2 * ID_BYTES) return undefined;
  const bytes = fromHex(digits);
  const half = digits.length % 2 === 0 ? undefined : Number.parseInt(digits.slice(-1), 16);
  return {
    digits,
    isWhole: digits.length === 2 * ID_BYTES,
    matchesName: (name) =>
      name.startsWith(bytes) && (half === undefined || name.charCodeAt(bytes.length) >> 4 === half),
    matchesCredential: (each) => credentialDigits(each).startsWith(credential),
  };
}

function credentialDigits(credential: number): string {
  const digits = Math.abs(credential)
    .toString(16)
    .padStart(2 * CREDENTIAL_BYTES, '0');
  return digits.slice(-2 * CREDENTIAL_BYTES);
}

function toHex(bytes: string): string {
  let hex = '';
  for (let i = 0; i < bytes.length; i += 1) hex += bytes.charCodeAt(i).toString(16).padStart(2, '0');
  return hex;
}

/** Ignores a last digit without a second one. */
function fromHex(digits: string): string {
  let bytes = '';
  for (let i = 0; i + 1 < digits.length; i += 2) {
    bytes += String.fromCharCode(Number.parseInt(digits.slice(i, i + 2), 16));
  }
  return bytes;
}
