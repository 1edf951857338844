import type { IncomingHttpHeaders } from 'node:http';

/** Of these Node keeps the first line only. */
const SINGLE: ReadonlySet<string> = new Set([
  'age',
  'authorization',
  'content-length',
  'content-type',
  'etag',
  'expires',
  'from',
  'host',
  'if-modified-since',
  'if-unmodified-since',
  'last-modified',
  'location',
  'max-forwards',
  'proxy-authorization',
  'referer',
  'retry-after',
  'server',
  'user-agent',
]);

/** The headers of a request by name, as `IncomingMessage.headers` has them. @param raw names and values in turn */
export function joinHeaders(raw: readonly string[]): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = {};
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    const value = raw[i + 1] ?? '';
    const earlier = headers[name];
    if (name === 'set-cookie') headers[name] = [...(headers[name] ?? []), value];
    else if (earlier === undefined) headers[name] = value;
    else if (!SINGLE.has(name)) headers[name] = `${String(earlier)}${name === 'cookie' ? '; ' : ', '}${value}`;
  }
  return headers;
}
