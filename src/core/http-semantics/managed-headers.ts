/** Request headers that do not go to the upstream as they came: of the hop, written anew, or added. In lower case. */

/** RFC 9110 §7.6.1, and Proxy-Connection of old. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
  'proxy-authenticate',
  'proxy-authorization',
]);

/** Written anew, or answered by us. */
export const WRITTEN_ANEW: ReadonlySet<string> = new Set([
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

/** Counted down, waited for, or made a part of our trace. */
export const CHANGED: ReadonlySet<string> = new Set(['max-forwards', 'prefer', 'traceparent', 'tracestate']);

/** Whether what its name begins with is what proxies say to each other. @param name in lower case, `-` for `_` */
export function isOfProxies(name: string): boolean {
  return name.startsWith('tidegate-') || name.startsWith('x-envoy-') || name.startsWith('x-forwarded-');
}

/** Whether the value that the upstream gets is ours to say. @param name as it is written */
export function isOwned(name: string): boolean {
  const lower = name.toLowerCase().replaceAll('_', '-');
  return HOP_BY_HOP.has(lower) || WRITTEN_ANEW.has(lower) || CHANGED.has(lower) || isOfProxies(lower);
}
