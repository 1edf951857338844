import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import { listElements } from '../../core/http-semantics/list-field.ts';

/** A body longer than this, or unpacked longer, is not looked into: errors are short. */
export const MAX_LOOK = 16 * 1024;

/** Enough for any list of errors. */
const MAX_CODES = 32;
/** Where a provider has no code, its message may have to do. */
const LONGEST_CODE = 512;

/** Where a code stands: names of members in turn, `*` each. */
export type Field = readonly string[];

/**
 * The codes at these fields of a JSON body, in the order of the fields: text, and numbers as text. None where the body is no JSON, or
 * is packed in a way nobody knows. Never throws, whatever the bytes; takes time in proportion to MAX_LOOK.
 * @param body whole, at most MAX_LOOK bytes
 * @param encoding its Content-Encoding; of a packed body a copy is unpacked
 */
export function readCodes(body: Buffer, encoding: string, fields: readonly Field[]): readonly string[] {
  const root = parse(unpack(body, codingOf(encoding)));
  const codes: string[] = [];
  for (const field of fields) gather(root, field, 0, codes);
  return codes;
}

/** Whether a body of this Content-Encoding can be looked into. */
export function isReadable(encoding: string): boolean {
  return UNPACK.has(codingOf(encoding));
}

/** Its codings but `identity`, joined by commas: '' where the body is as it is. */
function codingOf(encoding: string): string {
  const codings = listElements(encoding.toLowerCase());
  return codings.filter((coding) => coding !== 'identity').join(',');
}

const bound = { maxOutputLength: MAX_LOOK };
const UNPACK: ReadonlyMap<string, (body: Buffer) => Buffer> = new Map([
  ['', (body) => body],
  ['gzip', (body) => gunzipSync(body, bound)],
  ['x-gzip', (body) => gunzipSync(body, bound)],
  ['deflate', (body) => inflateSync(body, bound)],
  ['br', (body) => brotliDecompressSync(body, bound)],
]);

function unpack(body: Buffer, encoding: string): Buffer | undefined {
  try {
    return UNPACK.get(encoding)?.(body);
  } catch {
    return undefined; // broken, or longer than it may be
  }
}

function parse(body: Buffer | undefined): unknown {
  if (body === undefined) return undefined;
  try {
    // As a browser does: without a byte order mark, and what is no UTF-8 replaced.
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}

function gather(value: unknown, field: Field, at: number, codes: string[]): void {
  if (codes.length >= MAX_CODES) return;
  const step = field[at];
  if (step === undefined) {
    const isCode = typeof value === 'string' || typeof value === 'number';
    if (isCode && String(value).length <= LONGEST_CODE) codes.push(String(value));
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  if (step === '*') {
    for (const each of Object.values(value)) gather(each, field, at + 1, codes);
  } else if (Object.hasOwn(value, step)) {
    gather(Reflect.get(value, step), field, at + 1, codes);
  }
}
