import type { RoutedRequest } from '../request/routed-request.ts';
import type { RepeatIdentity } from './replaying-key-claim.ts';
import type { WriteDigests } from './write-digests.ts';

/** Headers that authenticate clients, besides those that the configuration names. */
const CREDENTIAL_HEADERS = ['authorization', 'cookie', 'x-api-key', 'api-key', 'x-auth-token'] as const;

/**
 * @param name of the write, as in its identity
 * @param body undefined if it is not known whole
 */
export function repeatIdentityOf(
  digests: WriteDigests,
  routed: RoutedRequest,
  name: string,
  body: Uint8Array | undefined,
): RepeatIdentity {
  const { headers, target } = routed.request;
  const { hash, identifiedBy, keyOwner } = routed.client;
  const lastingName = routed.route.target.accounts === undefined ? undefined : keyOwner?.name;
  // A client may repeat its write from another address.
  const client = lastingName ?? (identifiedBy === 'ip' ? '' : hash);
  const credentials = [routed.route.target.credentialHeader, ...CREDENTIAL_HEADERS].map((each) => headers[each]);
  const query = target.includes('?') ? target.slice(target.indexOf('?')) : '';
  return {
    id: digests.responseId(name, JSON.stringify([client, ...credentials.map((each) => each ?? null)])),
    fingerprint: body && digests.fingerprint(query, body),
    acceptEncoding: headers['accept-encoding'] ?? '',
  };
}
