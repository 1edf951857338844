import {
  DeliveriesUnavailable,
  type DeliveryFilter,
  type DeliveryInspection,
  type DeliveryTotals,
} from '../../core/delivery/delivery-store.ts';
import type { Delivery, DeliveryMessage, DeliveryResult } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';
import {
  type CalledMethod,
  type DeliveryCalls,
  isResultOfCall,
  NOTHING_STORED,
} from '../../sharing/deliveries/delivery-protocol.ts';
import type { WorkerQueryDispatch } from './worker-query-dispatch.ts';

/** A worker waits a second for each response of Redis, of which a call needs two at most. */
const ANSWERED_WITHIN: Millis = 2500;

/** The deliveries that replicas share over Redis: a primary has no connection to it, and asks one of its workers. */
export class WorkerDeliveryInspection implements DeliveryInspection {
  readonly #workers: Pick<WorkerQueryDispatch, 'askOne'>;
  #totals = NOTHING_STORED;

  constructor(workers: Pick<WorkerQueryDispatch, 'askOne'>) {
    this.#workers = workers;
  }

  /** As `refresh` has read them. */
  get totals(): DeliveryTotals {
    return this.#totals;
  }

  async refresh(): Promise<void> {
    this.#totals = (await this.#workers.askOne('deliveryTotals', null, ANSWERED_WITHIN)) ?? this.#totals;
  }

  find(id: string): Promise<Delivery | undefined> {
    return this.#call('find', [id]);
  }

  list(filter: DeliveryFilter): Promise<readonly Delivery[]> {
    return this.#call('list', [filter]);
  }

  message(id: string): Promise<DeliveryMessage | undefined> {
    return this.#call('message', [id]);
  }

  result(id: string): Promise<DeliveryResult | undefined> {
    return this.#call('result', [id]);
  }

  retry(id: string, now: Millis): Promise<boolean> {
    return this.#call('retry', [id, now]);
  }

  cancel(id: string, now: Millis): Promise<boolean> {
    return this.#call('cancel', [id, now]);
  }

  async #call<K extends CalledMethod>(
    method: K,
    input: DeliveryCalls[K]['input'],
  ): Promise<DeliveryCalls[K]['result']> {
    const reply = await this.#workers.askOne('delivery', { do: 'call', query: 0, method, input }, ANSWERED_WITHIN);
    if (reply !== undefined && isResultOfCall(method, reply)) return reply.result;
    throw new DeliveriesUnavailable(reply?.type === 'unavailable' ? reply.why : NO_ANSWER);
  }
}

const NO_ANSWER = 'Redis has the deliveries, and no worker that reads and changes them has responded. Look again.';
