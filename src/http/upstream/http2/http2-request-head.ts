import { headersLength } from '../../headers/raw-headers.ts';
import type { DispatchRequest } from '../dispatch-request.ts';

/** Not allowed in HTTP/2 (RFC 9113 §8.2.2); the only such header that has not been removed before. */
const FORBIDDEN_HEADER = 'http2-settings';

/** The headers of a request for HTTP/2: names in lower case (RFC 9113 §8.2.1). */
export function toHttp2Headers(raw: readonly string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    if (name !== FORBIDDEN_HEADER) out.push(name, raw[i + 1] ?? '');
  }
  return out;
}

/** nghttp2 1.x sends no larger head (NGHTTP2_MAX_HEADERSLEN): Node 24.21 closes the connection over a larger one. */
const MAX_HEAD_SIZE = 64 * 1024;
/** The size that nghttp2 assumes for each field beside its text (nghttp2_hd_deflate_bound). */
const FIELD_OVERHEAD = 12;
/** `:method`, `:scheme`, `:path`, `content-length` and `priority` with their values except the path, and nghttp2's fixed size. */
const HEAD_OVERHEAD = 256;

/** Whether a head can be sent. @param headers names and values in turn */
export function fitsHttp2Head(path: string, headers: readonly string[]): boolean {
  const overhead = HEAD_OVERHEAD + (headers.length / 2) * FIELD_OVERHEAD;
  return overhead + path.length + headersLength(headers) <= MAX_HEAD_SIZE;
}

/**
 * Lets the upstream send the responses of a connection in turns. By default it sends them in order of their requests (RFC 9218 §10), as
 * Node 24.21 does: beside large ones that are read fast, no byte of a later body is sent. A client's own value would let it precede others
 * whose requests share the connection (§13.1), so it is replaced.
 */
const PRIORITY = ['priority', 'i'];

/** Names and values in turn, pseudo-headers first. Node's `request` throws for what it refuses to write. */
export function toHttp2Head({ method, origin, path, headers, body }: DispatchRequest): string[] {
  const out = [':method', String(method), ':scheme', schemeOf(origin), ':authority', '', ':path', path];
  let hasLength = false;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    if (name === 'host') out[AUTHORITY_VALUE_INDEX] = value;
    else if (name !== 'priority') out.push(name, value);
    hasLength ||= name === 'content-length';
  }
  if (Buffer.isBuffer(body) && !hasLength) out.push('content-length', String(body.length));
  out.push(...PRIORITY);
  return out;
}

const AUTHORITY_VALUE_INDEX = 5;

function schemeOf(origin: string | URL | undefined): string {
  return String(origin).startsWith('https:') ? 'https' : 'http';
}
