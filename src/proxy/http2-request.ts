/**
 * A request as HTTP/2 has it. What undici 8.12.4 cannot open a stream for, it ends the whole connection for, whoever else
 * is on it (client-h2.js:1086, openStream); and Node 24.21 goes away with a connection that a head is too large for
 * (lib/internal/http2/core.js:663, onFrameError). So nothing may get there that Node refuses (lib/internal/http2/util.js:766,
 * buildNgHeaderString).
 *
 * Other things of undici 8.12.4's HTTP/2 that are undone, each where it shows:
 * - it leaves streams behind that are never reset (client-h2.js:1169, abort): mend-http2.ts
 * - it sends again by itself what was refused (client-h2.js:1610, retryRefusedStream): attempt.ts, onRequestStart
 * - it leaves the code out of an error of a body that was being written (client-h2.js:1874, writeStream): failure.ts
 * - it tells an error of GOAWAY to those alone that were not read (client-h2.js:709, onHttp2SessionGoAway): failure.ts
 * - raw headers of answers are an object, whatever its types say (client-h2.js:1518, onResponse): attempt.ts, decode
 */

/** No field of a request in HTTP/2 (RFC 9113 §8.2.2): `http2-settings` is the one that gets as far as here. */
const FORBIDDEN = 'http2-settings';

/** Names in lower case: undici tells them apart by their case, and Node refuses one that comes twice so. */
export function http2Headers(raw: readonly string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    if (name !== FORBIDDEN) out.push(name, raw[i + 1] ?? '');
  }
  return out;
}

/** nghttp2 1.x sends no more in a head (NGHTTP2_MAX_HEADERSLEN); undici lets nobody raise it. */
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
