import type { KeyClaim } from '../../core/idempotency/key-store.ts';
import { parseKeyPlace } from '../../core/idempotency/key-place.ts';
import { UNKNOWN_ENDPOINT } from '../../core/idempotency/keyed-write.ts';

/**
 * Label of the only endpoint that may get a write again, because the others may not know its key. If the endpoint is unknown, another
 * request may be on its way to any of several, so none of them gets this one: the label is `UNKNOWN_ENDPOINT`. Returns undefined if
 * any endpoint may get it: there is only one and its label is not known, or there is no claim.
 * @param last where the last attempt of this request went; undefined before the first
 */
export function endpointOfKey(
  claim: Pick<KeyClaim, 'endpoint'> | undefined,
  last: { readonly label: string } | undefined,
  { endpoints }: { readonly endpoints: { readonly all: readonly unknown[] } },
): string | undefined {
  if (claim === undefined) return undefined;
  // The keeper forgets the endpoint after a rejection, even after one that reports the write in progress there.
  if (claim.endpoint !== undefined) return parseKeyPlace(claim.endpoint).label;
  return last?.label ?? (endpoints.all.length > 1 ? UNKNOWN_ENDPOINT : undefined);
}
