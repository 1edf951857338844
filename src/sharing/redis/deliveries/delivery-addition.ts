import type { NewDelivery } from '../../../core/delivery/delivery-store.ts';
import type { Millis } from '../../../core/scalars.ts';
import { digestOf, encodeFields } from './delivery-fields.ts';
import type { DeliveryBounds } from './delivery-poll.ts';

/** A delivery to be stored, alone or with the end of a write. */
export interface DeliveryAddition {
  readonly id: string;
  readonly route: string;
  /** What the script `add` reads. */
  readonly args: readonly (string | Buffer)[];
}

/** What the script `add` returns. */
export type AdditionReply =
  /** `hasForgotten`: an event id was removed, because there are too many. */
  | { readonly kind: 'stored'; readonly hasForgotten: boolean }
  | { readonly kind: 'duplicate'; readonly id: string }
  | { readonly kind: 'full'; readonly by: 'count' | 'bytes' };

/** @param sealed the message */
export function encodeAddition(
  delivery: NewDelivery,
  sealed: Buffer,
  { maxCount, maxBytes, maxEvents }: DeliveryBounds,
  now: Millis,
): DeliveryAddition {
  const { id, route, owner, sender, eventId, orderKey, duplicatesUntil, acceptedAt } = delivery;
  const bounds = [maxCount, maxBytes, maxEvents].map(String);
  const args = [
    ...[id, route, owner, sender, digestOf(route, eventId), digestOf(route, orderKey), String(duplicatesUntil)],
    ...[
      String(sealed.length),
      ...bounds,
      String(now),
      String(acceptedAt),
      ...encodeFields(delivery),
      'message',
      sealed,
    ],
  ];
  return { id, route, args };
}

/** Undefined if it is something else. */
export function readAddition(reply: unknown): AdditionReply | undefined {
  const [kind, detail = ''] = Array.isArray(reply) ? reply.map(String) : [];
  if (kind === 'stored') return { kind, hasForgotten: detail !== '0' };
  if (kind === 'duplicate') return { kind, id: detail };
  return kind === 'full' ? { kind, by: detail === 'count' ? 'count' : 'bytes' } : undefined;
}
