import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import { parseListField } from '../../core/http-semantics/list-field.ts';

/** Longer bodies, encoded or decoded, are not read for error codes: error bodies are short. */
export const MAX_PREVIEW_BYTES = 16 * 1024;

/** Enough for any list of errors. */
const MAX_CODES = 32;
/** A message, for a provider without codes. */
const MAX_CODE_LENGTH = 512;

/** The path of an error code: member names in turn; `*` matches every member or element. */
export type JsonFieldPath = readonly string[];

/**
 * The error codes at these fields of a JSON body, in the order of the fields; numbers as text. Empty if the body is not JSON or
 * its encoding is unknown. Does not throw, whatever the bytes; takes time in proportion to MAX_PREVIEW_BYTES.
 * @param body complete, at most MAX_PREVIEW_BYTES
 * @param encoding its Content-Encoding; an encoded body is decoded into a copy
 */
export function readErrorCodes(body: Buffer, encoding: string, fields: readonly JsonFieldPath[]): readonly string[] {
  const root = parse(decode(body, codingOf(encoding)));
  const codes: string[] = [];
  for (const field of fields) collectCodes(root, field, 0, codes);
  return codes;
}

/** Whether a body of this Content-Encoding can be decoded. */
export function isDecodable(encoding: string): boolean {
  return DECODERS.has(codingOf(encoding));
}

/** Its codings without `identity`, joined by commas; '' for a body that is not encoded. */
function codingOf(encoding: string): string {
  const codings = parseListField(encoding.toLowerCase());
  return codings.filter((coding) => coding !== 'identity').join(',');
}

const DECODE_LIMIT = { maxOutputLength: MAX_PREVIEW_BYTES };
const DECODERS: ReadonlyMap<string, (body: Buffer) => Buffer> = new Map([
  ['', (body) => body],
  ['gzip', (body) => gunzipSync(body, DECODE_LIMIT)],
  ['x-gzip', (body) => gunzipSync(body, DECODE_LIMIT)],
  ['deflate', (body) => inflateSync(body, DECODE_LIMIT)],
  ['br', (body) => brotliDecompressSync(body, DECODE_LIMIT)],
]);

function decode(body: Buffer, encoding: string): Buffer | undefined {
  try {
    return DECODERS.get(encoding)?.(body);
  } catch {
    return undefined; // invalid, or too long when decoded
  }
}

function parse(body: Buffer | undefined): unknown {
  if (body === undefined) return undefined;
  try {
    // Like a browser, it strips a byte order mark and replaces invalid UTF-8.
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}

function collectCodes(value: unknown, field: JsonFieldPath, at: number, codes: string[]): void {
  if (codes.length >= MAX_CODES) return;
  const step = field[at];
  if (step === undefined) {
    const isCode = typeof value === 'string' || typeof value === 'number';
    if (isCode && String(value).length <= MAX_CODE_LENGTH) codes.push(String(value));
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  if (step === '*') {
    for (const each of Object.values(value)) collectCodes(each, field, at + 1, codes);
  } else if (Object.hasOwn(value, step)) {
    collectCodes(Reflect.get(value, step), field, at + 1, codes);
  }
}
