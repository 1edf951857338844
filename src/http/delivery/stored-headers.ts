import { isListedInConnection } from '../headers/forward-headers.ts';

/** They describe how the request arrived or what its sender can read, or are ours to set at each attempt. */
const NOT_STORED: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'tidegate-delivery-attempt',
  'tidegate-delivery-id',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The headers that a delivery keeps, with the length of its body. @param raw names and values in turn */
export function storedHeaders(raw: readonly string[], length: number): string[] {
  const stored: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const lower = name.toLowerCase();
    if (NOT_STORED.has(lower) || isListedInConnection(raw, lower)) continue;
    stored.push(name, raw[i + 1] ?? '');
  }
  if (length > 0) stored.push('Content-Length', String(length));
  return stored;
}
