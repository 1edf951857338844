/** Request headers that are not forwarded unchanged: hop-by-hop, rewritten or modified ones. Names are in lower case. */

/** RFC 9110 §7.6.1, and the obsolete Proxy-Connection. */
export const HOP_BY_HOP_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
  'proxy-authenticate',
  'proxy-authorization',
]);

/** Written by the proxy, or answered by it (`Expect`). */
export const REWRITTEN_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'expect',
  'via',
  'x-request-id',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'forwarded',
  // RFC 9110 §6.5: undici 8 cannot send request trailers, so none are announced.
  'trailer',
]);

/** Decremented (`Max-Forwards`), honoured by the proxy (`Prefer`), or replaced by the proxy's span. */
export const MODIFIED_HEADERS: ReadonlySet<string> = new Set(['max-forwards', 'prefer', 'traceparent', 'tracestate']);

/** True if the prefix is reserved for communication between proxies. @param name in lower case, with `-` for `_` */
export function isProxyHeader(name: string): boolean {
  return name.startsWith('tidegate-') || name.startsWith('x-envoy-') || name.startsWith('x-forwarded-');
}

/** True if the proxy decides the value that the upstream gets. @param name in any case, with `-` or `_` */
export function isManagedHeader(name: string): boolean {
  const lower = name.toLowerCase().replaceAll('_', '-');
  return (
    HOP_BY_HOP_HEADERS.has(lower) || REWRITTEN_HEADERS.has(lower) || MODIFIED_HEADERS.has(lower) || isProxyHeader(lower)
  );
}
