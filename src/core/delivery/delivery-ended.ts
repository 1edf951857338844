import type { ProxyEvent } from '../events/proxy-events.ts';
import type { Millis } from '../scalars.ts';
import type { Delivery, DeliveryAttempt, DeliveryEnd } from './delivery.ts';

/** The delivery as it ends, with its last attempt. */
type EndingDelivery = Pick<Delivery, 'id' | 'route' | 'upstream' | 'acceptedAt' | 'attempts'> & {
  readonly lastAttempt: Partial<Pick<DeliveryAttempt, 'status' | 'reason'>> | undefined;
};

/** The event of the end of a delivery. @param now wall clock */
export function deliveryEnded(delivery: EndingDelivery, event: DeliveryEnd, now: Millis): ProxyEvent {
  const { id, route, upstream, acceptedAt, attempts, lastAttempt } = delivery;
  const { status, reason } = lastAttempt ?? {};
  return { type: 'delivery', route, event, age: now - acceptedAt, ended: { id, upstream, attempts, status, reason } };
}
