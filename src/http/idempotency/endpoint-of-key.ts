import type { KeyClaim } from '../../core/idempotency/key-store.ts';
import { UNKNOWN_ENDPOINT } from '../../core/idempotency/keyed-write.ts';

/**
 * Label of the only endpoint that may get a write again, whose key the others may not know. If nobody knows the endpoint, another
 * request may just be sent to any of several, so none of them gets it. Returns undefined for any endpoint: if there is only one, or
 * without a claim.
 * @param last where the last attempt of this request went; undefined before the first
 */
export function endpointOfKey(
  claim: Pick<KeyClaim, 'endpoint'> | undefined,
  last: { readonly label: string } | undefined,
  { endpoints }: { readonly endpoints: { readonly all: readonly unknown[] } },
): string | undefined {
  if (claim === undefined) return undefined;
  // The keeper forgets the endpoint of a rejection, also of one which says that the write is in progress there.
  return claim.endpoint ?? last?.label ?? (endpoints.all.length > 1 ? UNKNOWN_ENDPOINT : undefined);
}
