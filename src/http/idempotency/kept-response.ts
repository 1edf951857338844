import { isPacingField } from '../../core/hints/hint-fields.ts';
import { HOP_BY_HOP_HEADERS } from '../../core/http-semantics/managed-headers.ts';
import { parseListField } from '../../core/http-semantics/list-field.ts';
import type { Millis } from '../../core/scalars.ts';

/** The response to a write, as it is kept for repeats. */
export interface KeptResponse {
  readonly status: number;
  readonly reasonPhrase: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  /** A digest of the query and body of the request. */
  readonly fingerprint: string;
  /** The `Accept-Encoding` of the request, which decides how the body may be encoded. */
  readonly acceptEncoding: string;
  /** For how long it is still kept; absent until it is. */
  readonly keptFor?: Millis;
}

/** Bytes of one response, its headers included. Longer ones are not kept. */
export const MAX_KEPT_BYTES = 64 * 1024;

/** About one exchange, its connection or its time, not about the write. */
const NOT_KEPT: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP_HEADERS,
  'alt-svc',
  'clear-site-data',
  'content-length', // of the body that is sent
  'server-timing',
  'set-cookie',
  'trailer',
  'via',
  'x-request-id',
]);

/** Limits of the upstream at the time, those that are not read as hints included, and what Tidegate itself adds. */
const NOT_KEPT_PATTERN = /(?:^|-)rate-?limit(?:-|$)|^tidegate-/;

/**
 * Returns the headers of a response that its repeats get too.
 * @param raw names and values in turn
 * @param pacingHeaders that the upstream's `throttle` rules read as times or limits, in lower case
 */
export function selectKeptHeaders(raw: readonly string[], pacingHeaders?: ReadonlySet<string>): string[] {
  const connection = raw.filter((_, i) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === 'connection').join(',');
  const listed = new Set(parseListField(connection.toLowerCase()));
  const kept: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const lower = name.toLowerCase();
    if (NOT_KEPT.has(lower) || NOT_KEPT_PATTERN.test(lower) || listed.has(lower)) continue;
    if (!isPacingField(lower) && pacingHeaders?.has(lower) !== true) kept.push(name, raw[i + 1] ?? '');
  }
  return kept;
}

interface EncodedHead extends Omit<KeptResponse, 'body' | 'keptFor'> {
  readonly version: typeof VERSION;
}

/** The version of the encoding. */
const VERSION = 1;
const LENGTH_BYTES = 4;

/** Only this code writes this version, so the other fields are not checked. */
function isEncodedHead(encoded: unknown): encoded is EncodedHead {
  return typeof encoded === 'object' && encoded !== null && 'version' in encoded && encoded.version === VERSION;
}

/** The length of the head, the head as JSON, and the body. */
export function encodeKeptResponse({ body, ...head }: Omit<KeptResponse, 'keptFor'>): Buffer {
  const encoded: EncodedHead = { version: VERSION, ...head };
  const text = Buffer.from(JSON.stringify(encoded));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text, body]);
}

/** Undefined if another version has encoded it. */
export function decodeKeptResponse(bytes: Buffer): KeptResponse | undefined {
  if (bytes.length < LENGTH_BYTES) return undefined;
  const end = LENGTH_BYTES + bytes.readUInt32BE();
  try {
    const encoded: unknown = JSON.parse(bytes.toString('utf8', LENGTH_BYTES, end));
    if (!isEncodedHead(encoded)) return undefined;
    const { version: _, ...head } = encoded;
    return { ...head, body: bytes.subarray(end) };
  } catch {
    return undefined;
  }
}
