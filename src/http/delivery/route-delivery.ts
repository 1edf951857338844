import { keyFromHeaders } from '../idempotency/idempotency-key.ts';
import { identifyRequest, type RoutedRequest, type UnidentifiedRequest } from '../request/routed-request.ts';
import type { DeliveryRequest } from './delivery-request.ts';

export interface ArrivedDelivery extends Pick<UnidentifiedRequest, 'response' | 'route' | 'snapshot'> {
  readonly request: DeliveryRequest;
}

/**
 * An attempt of a stored delivery, as a request of its route. A generated key is the same in all of its attempts. Each key belongs to the
 * client that sent the request, by the name that the client had then: a reload may have changed what names clients.
 */
export function routeDelivery({ request, response, route, snapshot }: ArrivedDelivery, id: string): RoutedRequest {
  const accepted = { ...route, verify: undefined }; // its signature was verified, and may be too old by now
  const arrived = { request, response, upgrade: undefined, route: accepted, snapshot, isPreflight: false };
  const found = keyFromHeaders(request, route);
  const key = found?.from === 'minted' ? { ...found, value: request.delivery } : found;
  const routed = identifyRequest(arrived, id, key);
  const client = { ...routed.client, keyOwner: request.keyOwner };
  return { ...routed, client, keyWatch: { record: undefined } };
}
