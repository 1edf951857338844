import type { SendOptions } from './http1-connection.ts';

/** No field of a request in HTTP/2 (RFC 9113 §8.2.2): `http2-settings` is the one that gets as far as here. */
const FORBIDDEN = 'http2-settings';

/** Names in lower case (RFC 9113 §8.2.1). */
export function http2Headers(raw: readonly string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    if (name !== FORBIDDEN) out.push(name, raw[i + 1] ?? '');
  }
  return out;
}

/** nghttp2 1.x sends no more in a head (NGHTTP2_MAX_HEADERSLEN): Node 24.21 goes away with a connection that one is too large for. */
const MOST = 64 * 1024;
/** What it reckons with for each field, and once (nghttp2_hd_deflate_bound). */
const OF_FIELD = 12;
/** `:method`, `:scheme`, `:path`, `content-length`, with their values but for the path, and what is reckoned once. */
const OF_REST = 256;

/** Whether a head is small enough to be sent. @param headers names and values in turn */
export function fitsHttp2(path: string, headers: readonly string[]): boolean {
  let size = OF_REST + path.length + (headers.length / 2) * OF_FIELD;
  for (const text of headers) size += text.length;
  return size <= MOST;
}

/** Names and values in turn, pseudo-headers first. What Node refuses to write, its `request` throws for. */
export function http2Head({ method, origin, path, headers, body }: SendOptions): string[] {
  const out = [':method', String(method), ':scheme', schemeOf(origin), ':authority', '', ':path', path];
  let hasLength = false;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    if (name === 'host') out[AUTHORITY] = value;
    else out.push(name, value);
    hasLength ||= name === 'content-length';
  }
  if (Buffer.isBuffer(body) && !hasLength) out.push('content-length', String(body.length));
  return out;
}

const AUTHORITY = 5;

function schemeOf(origin: string | URL | undefined): string {
  return String(origin).startsWith('https:') ? 'https' : 'http';
}
