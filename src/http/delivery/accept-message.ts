import type { DeliveryPolicy } from '../../core/delivery/delivery-policy.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { acceptedHeaders } from './accepted-key.ts';
import type { Acceptance } from './acceptance.ts';
import { BODY_TOO_LARGE } from './delivery-problems.ts';
import { readField } from './read-field.ts';
import { storedHeaders } from './stored-headers.ts';

/** Accepts the messages of a route with `deliver`. */
export function acceptMessage(
  routed: RoutedRequest,
  { eventId, orderBy, deduplicateFor, respond: { status, body, contentType } }: DeliveryPolicy,
): Acceptance {
  const { request } = routed;
  return {
    bodyTooLarge: BODY_TOO_LARGE,
    describe: (bytes) => ({
      kind: 'message',
      eventId: readField(eventId, request, bytes),
      orderKey: readField(orderBy, request, bytes),
      deduplicateFor,
      headers: acceptedHeaders(storedHeaders(request.rawHeaders, bytes.length), routed),
    }),
    reply: (_accepted, onReply) =>
      onReply({ status, headers: body === undefined ? [] : ['Content-Type', contentType], body }),
  };
}
