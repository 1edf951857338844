import type { DeliveryMessage } from '../../core/delivery/delivery.ts';
import type { IdempotencyKey } from '../idempotency/idempotency-types.ts';
import { upstreamKeyOf, withUpstreamKeys } from '../idempotency/upstream-key.ts';
import type { RoutedRequest } from '../request/routed-request.ts';

/**
 * What a delivery keeps of its key, so that all of its attempts send the same one, also after a reload. An attempt has the request of its
 * client without the credential that has proven its name.
 */
export function acceptedKeyOf(
  routed: RoutedRequest,
  key: IdempotencyKey | undefined,
): Pick<DeliveryMessage, 'keyOwner' | 'upstreamKey'> {
  const { route, client } = routed;
  if (route.target.accounts === undefined) return {};
  // The id of a message is its key in place of a generated one.
  const isReplaced = route.delivery !== undefined && key?.from === 'minted';
  return { keyOwner: client.keyOwner, upstreamKey: isReplaced ? undefined : upstreamKeyOf(routed, undefined, key) };
}

/** The headers of a message with the keys that its attempts send: no record says which key an attempt before had. */
export function acceptedHeaders(headers: readonly string[], routed: RoutedRequest): string[] {
  return withUpstreamKeys([...headers], routed, upstreamKeyOf(routed));
}
