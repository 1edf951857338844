import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib';
import { parseListField } from '../../core/http-semantics/list-field.ts';

type DecodedCallback = (error: Error | null, decoded: Buffer) => void;
type Decoder = (body: Buffer, limit: { readonly maxOutputLength: number }, done: DecodedCallback) => void;

const DECODERS: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ['', (body, _, done) => done(null, body)],
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', inflate],
  ['br', brotliDecompress],
  ['zstd', zstdDecompress],
]);

/** The codings of a Content-Encoding without `identity`, joined by commas; '' for a body that is not encoded. */
export function codingOf(contentEncoding: string): string {
  return parseListField(contentEncoding.toLowerCase())
    .filter((coding) => coding !== 'identity')
    .join(',');
}

/**
 * Decodes a body in the thread pool. Calls back with undefined if its coding is unknown, it is invalid, or it is too long when decoded.
 * @param coding see `codingOf`
 */
export function decodeBody(
  body: Buffer,
  coding: string,
  maxOutputLength: number,
  done: (decoded: Buffer | undefined) => void,
): void {
  const decoder = DECODERS.get(coding);
  if (decoder === undefined) return done(undefined);
  decoder(body, { maxOutputLength }, (error, decoded) => done(error === null ? decoded : undefined));
}
