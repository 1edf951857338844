/**
 * The idempotency key that an upstream gets for a client's own. Through the accounts of the gateway, all clients use one credential, so the
 * upstream knows all their keys as those of one account.
 */
import { hash } from 'node:crypto';
import { UNKNOWN_ENDPOINT } from '../../core/idempotency/keyed-write.ts';
import { parseKeyPlace } from '../../core/idempotency/key-place.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { rewriteKeyLines, writtenKeyOf } from './key-header.ts';

/** Separates these digests from all others. A change of it makes each repeat a new write. */
const DOMAIN = 'tidegate idempotency key 1';

/** The bytes of a UUID of which version (4 bits) and variant (2 bits) are a part (RFC 9562 §5.8). */
const [VERSION_BYTE, VARIANT_BYTE] = [6, 8];

type KeyOfClient = Pick<RoutedRequest, 'route' | 'client' | 'key'>;

/**
 * Derives the key for the upstream: a UUID of version 8 (RFC 9562 §5.8) from SHA-256. The same in all processes, and after a restart. Two
 * clients never get the same key, whatever their own keys are.
 * @param owner `ClientIdentity.keyOwner`; undefined for all clients that nothing names
 */
export function deriveUpstreamKey(owner: string | undefined, key: string): string {
  const bytes = hash('sha256', JSON.stringify([DOMAIN, owner ?? '', key]), 'buffer').subarray(0, 16);
  bytes[VERSION_BYTE] = 0x80 | ((bytes[VERSION_BYTE] ?? 0) & 0x0f);
  bytes[VARIANT_BYTE] = 0x80 | ((bytes[VARIANT_BYTE] ?? 0) & 0x3f);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/**
 * Whether the upstream gets derived keys from this request. A write that was sent before keeps the form that is recorded with its key,
 * whatever the configuration says now: with another form, the upstream would take it for a new write.
 * @param recordedPlace where the write may have been sent before; undefined if nothing is recorded
 */
export function derivesKeys({ route, client, key }: KeyOfClient, recordedPlace?: string): boolean {
  const { accounts, idempotency } = route.target;
  if (accounts === undefined) return false;
  const isConfigured = idempotency.keyScope === 'client';
  if (key === undefined || recordedPlace === undefined || recordedPlace === UNKNOWN_ENDPOINT) return isConfigured;
  const { upstreamKey } = parseKeyPlace(recordedPlace);
  if (upstreamKey === undefined) return false;
  return isConfigured || upstreamKey === deriveUpstreamKey(client.keyOwner, key.value);
}

/** The derived key of a request; undefined if the upstream gets the client's own. @param recordedPlace see `derivesKeys` */
export function upstreamKeyOf(routed: KeyOfClient, recordedPlace?: string): string | undefined {
  const { key, client } = routed;
  if (key === undefined || !derivesKeys(routed, recordedPlace)) return undefined;
  return deriveUpstreamKey(client.keyOwner, key.value);
}

/**
 * Replaces the keys in the headers by derived ones. Each line of the header is replaced, also those that are no key for Tidegate, because
 * the upstream may read any of them.
 * @param headers for the upstream, names and values in turn
 */
export function withUpstreamKeys(headers: readonly string[], { route, client }: KeyOfClient): string[] {
  const { header } = route.target.idempotency;
  if (header === undefined) return [...headers];
  return rewriteKeyLines(headers, header.lower, (key) => deriveUpstreamKey(client.keyOwner, key));
}

/** Replaces the derived key in a response of the upstream by the client's own. @param headers names and values in turn */
export function withClientKey(
  headers: readonly string[],
  { route, client, key, request }: KeyOfClient & Pick<RoutedRequest, 'request'>,
): readonly string[] {
  const { accounts, idempotency } = route.target;
  const lower = idempotency.header?.lower;
  if (accounts === undefined || key === undefined || lower === undefined) return headers;
  if (!headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === lower)) return headers;
  const derived = deriveUpstreamKey(client.keyOwner, key.value);
  const own = key.from === 'header' ? writtenKeyOf(request.rawHeaders, lower) : key.value;
  return headers.map((text, i) => {
    const isKey = i % 2 === 1 && text === derived && headers[i - 1]?.toLowerCase() === lower;
    return isKey ? (own ?? text) : text;
  });
}
