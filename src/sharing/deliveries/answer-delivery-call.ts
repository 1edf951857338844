import { DeliveriesUnavailable, type DeliveryInspection } from '../../core/delivery/delivery-store.ts';
import type { CalledMethod, DeliveryCall, DeliveryCalls, OperationReply } from './delivery-protocol.ts';

type CallHandlers = {
  readonly [K in CalledMethod]: (
    store: DeliveryInspection,
    input: DeliveryCalls[K]['input'],
  ) => Promise<DeliveryCalls[K]['result']>;
};

const HANDLERS: CallHandlers = {
  find: (store, input) => store.find(...input),
  list: (store, input) => store.list(...input),
  message: (store, input) => store.message(...input),
  result: (store, input) => store.result(...input),
  retry: (store, input) => store.retry(...input),
  cancel: (store, input) => store.cancel(...input),
};

/** Answers a call of another process about the deliveries of this store. */
export async function answerDeliveryCall<K extends CalledMethod>(
  store: DeliveryInspection,
  { query, method, input }: DeliveryCall<K>,
): Promise<OperationReply> {
  try {
    const result = await HANDLERS[method](store, input);
    return { type: 'result', query, method, result };
  } catch (error) {
    if (!(error instanceof DeliveriesUnavailable)) throw error;
    return { type: 'unavailable', query, why: error.message };
  }
}
