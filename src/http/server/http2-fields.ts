import type { OutgoingHttpHeaders } from 'node:http2';
import { trimSpace } from '../../core/http-semantics/list-field.ts';
import { headersLength } from '../headers/raw-headers.ts';

/** Not allowed in HTTP/2 (RFC 9113 §8.2.2). */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'te',
]);

/** Headers for HTTP/2: names in lower case, no white space around values (RFC 9113 §8.2.1); repeated headers as lists. */
export function toHttp2Fields(flat: readonly string[]): OutgoingHttpHeaders {
  const fields = new Map<string, string | string[]>();
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const name = (flat[i] ?? '').toLowerCase();
    const value = trimSpace(flat[i + 1] ?? ''); // undici 8 keeps trailing white space
    if (CONNECTION_HEADERS.has(name)) continue;
    const before = fields.get(name);
    if (before === undefined) fields.set(name, value);
    else if (typeof before === 'string') fields.set(name, [before, value]);
    else before.push(value);
  }
  return Object.fromEntries(fields);
}

/** `:status` and `date`, which node:http2 adds. */
const HEAD_OVERHEAD = 128;

/** The size of a head as HTTP/2 counts it (RFC 9113 §6.5.2): each field is 32 bytes longer than its text. */
export function http2HeadSize(flat: readonly string[]): number {
  return HEAD_OVERHEAD + 16 * flat.length + headersLength(flat);
}
