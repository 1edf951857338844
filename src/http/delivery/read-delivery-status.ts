import type { DeliveryStore } from '../../core/delivery/delivery-store.ts';
import type { Delivery } from '../../core/delivery/delivery.ts';
import { type DeliveryStatus, describeDelivery } from './delivery-status.ts';

/** The state of a delivery as its sender sees it, with the response to a write. @throws DeliveriesUnavailable */
export async function readDeliveryStatus(
  store: Pick<DeliveryStore, 'result'>,
  delivery: Delivery,
): Promise<DeliveryStatus> {
  const hasResult = delivery.kind === 'write' && delivery.state.kind === 'delivered';
  return describeDelivery(delivery, hasResult ? await store.result(delivery.id) : undefined);
}
