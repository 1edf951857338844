/**
 * The idempotency key that an upstream gets for a client's own. Through the accounts of the gateway, all clients use one credential, so the
 * upstream knows all their keys as those of one account.
 */
import { hash } from 'node:crypto';
import { NO_OWNER } from '../../core/idempotency/key-owner.ts';
import { UNKNOWN_ENDPOINT } from '../../core/idempotency/keyed-write.ts';
import { parseKeyPlace } from '../../core/idempotency/key-place.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import type { UpstreamTarget } from '../request/route.ts';
import type { IdempotencySettings } from './idempotency-types.ts';
import { keyAccountOf } from './key-account.ts';
import { keyLinesOf, rewriteKeyLines, textOfKey, unquote } from './key-header.ts';

/** Separates these digests from all others. A change of it makes each repeat a new write. */
const DOMAIN = 'tidegate idempotency key 1';

/** The bytes of a UUID of which version (4 bits) and variant (2 bits) are a part (RFC 9562 §5.8). */
const [VERSION_BYTE, VARIANT_BYTE] = [6, 8];

type RequestWithOwner = Pick<RoutedRequest, 'route' | 'client' | 'request'>;
type KeyOfClient = RequestWithOwner & Pick<RoutedRequest, 'key'>;

/** What a derived key depends on. */
export interface UpstreamKeyParts {
  /** The name of the `KeyOwner`: empty for all clients that nothing names. */
  readonly owner: string;
  /** What the request names as the account of its key: see `keyAccountOf`. */
  readonly account: string;
  /** The client's own. */
  readonly key: string;
}

/**
 * Derives the key for the upstream: a UUID of version 8 (RFC 9562 §5.8) from SHA-256. The same in all processes, and after a restart. Two
 * clients never get the same key, whatever their own keys are.
 */
export function deriveUpstreamKey({ owner, account, key }: UpstreamKeyParts): string {
  const bytes = hash('sha256', JSON.stringify([DOMAIN, owner, account, key]), 'buffer').subarray(0, 16);
  bytes[VERSION_BYTE] = 0x80 | ((bytes[VERSION_BYTE] ?? 0) & 0x0f);
  bytes[VARIANT_BYTE] = 0x80 | ((bytes[VARIANT_BYTE] ?? 0) & 0x3f);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/**
 * Whether each client has keys of its own at the upstream. An attempt of a delivery keeps what was decided when the delivery was accepted:
 * its headers or its stored key say so.
 */
export function derivesKeys({ route, request }: KeyScopeOfRequest): boolean {
  const { accounts, idempotency } = route.target;
  if (request.delivery !== undefined) return request.upstreamKey !== undefined;
  return accounts !== undefined && idempotency.keyScope === 'client';
}

/** What decides whose keys are compared. */
export interface KeyScopeOfRequest {
  readonly request: Pick<RoutedRequest['request'], 'delivery' | 'upstreamKey'>;
  readonly route: {
    readonly target: Pick<UpstreamTarget, 'accounts'> & {
      readonly idempotency: Pick<IdempotencySettings, 'keyScope'>;
    };
  };
}

/**
 * The key that the upstream gets in place of the client's; undefined if it gets that one, or none. A write that was sent before keeps the
 * key that is recorded with it, whatever the configuration says now: with another one, the upstream would take it for a new write.
 * @param recordedPlace where the write may have been sent before; undefined if nothing is recorded
 * @param key also one in the body
 */
export function upstreamKeyOf(routed: KeyOfClient, recordedPlace?: string, key = routed.key): string | undefined {
  if (key === undefined) return undefined;
  const isRecorded = recordedPlace !== undefined && recordedPlace !== UNKNOWN_ENDPOINT;
  if (isRecorded) return parseKeyPlace(recordedPlace).upstreamKey;
  if (!derivesKeys(routed)) return undefined;
  return routed.request.upstreamKey ?? deriveFor(routed, key.value);
}

/**
 * Replaces the keys in the headers by derived ones. Each line of the header is replaced, also those that are no key for Tidegate, because
 * the upstream may read any of them.
 * @param headers for the upstream, names and values in turn
 * @param upstreamKey of the key of the request: see `upstreamKeyOf`
 */
export function withUpstreamKeys(headers: string[], routed: KeyOfClient, upstreamKey: string | undefined): string[] {
  const { header } = routed.route.target.idempotency;
  const isReplaced = routed.key === undefined ? derivesKeys(routed) : upstreamKey !== undefined;
  if (header === undefined || !isReplaced) return headers;
  return rewriteKeyLines(headers, header.lower, (key) => upstreamKey ?? deriveFor(routed, key));
}

/** The derived keys of the lines that are no key for Tidegate, as one text; undefined if there are none. */
export function ambiguousUpstreamKeys(routed: KeyOfClient): string | undefined {
  const { route, request, key } = routed;
  const { header } = route.target.idempotency;
  if (key !== undefined || header === undefined || !derivesKeys(routed)) return undefined;
  const keys = keyLinesOf(request.rawHeaders, header.lower).filter(({ value }) => value !== '');
  return keys.map(({ value }) => deriveFor(routed, textOfKey(value))).join(', ') || undefined;
}

/**
 * Replaces the derived keys in a response of the upstream by the client's own.
 * @param headers names and values in turn
 * @param sent the key of the last attempt; undefined if there was none, as for a kept response
 */
export function withClientKey(
  headers: readonly string[],
  routed: KeyOfClient,
  sent: { readonly upstreamKey: string | undefined },
): readonly string[] {
  const { route, key, request } = routed;
  const { accounts, idempotency } = route.target;
  const lower = idempotency.header?.lower;
  if (accounts === undefined || lower === undefined) return headers;
  if (!headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === lower)) return headers;
  const own = new Map<string, string>();
  const add = (text: string, written: string): void => {
    own.set(deriveFor(routed, text), unquote(written));
    if (sent.upstreamKey !== undefined && key !== undefined) own.set(sent.upstreamKey, unquote(written));
  };
  for (const { value } of keyLinesOf(request.rawHeaders, lower)) add(textOfKey(value), value);
  if (key?.from === 'minted') add(key.value, key.value);
  return headers.map((text, i) => {
    const isKey = i % 2 === 1 && headers[i - 1]?.toLowerCase() === lower;
    return isKey ? replaceEach(text, own) : text;
  });
}

/** The upstream may have joined several lines, or removed quotes. */
function replaceEach(text: string, replacements: ReadonlyMap<string, string>): string {
  let replaced = text;
  for (const [from, to] of replacements) replaced = replaced.replaceAll(from, () => to);
  return replaced;
}

function deriveFor({ route, client, request }: RequestWithOwner, key: string): string {
  const account = keyAccountOf(route.target.idempotency.account, request);
  return deriveUpstreamKey({ owner: (client.keyOwner ?? NO_OWNER).name, account, key });
}
