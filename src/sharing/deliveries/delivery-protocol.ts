/** The messages between a worker and its primary, which keeps the deliveries. Bodies are buffers: the channel copies them as they are. */
import type {
  AddResult,
  DeliveryStore,
  DeliveryTotals,
  NewDelivery,
  TakenDeliveries,
} from '../../core/delivery/delivery-store.ts';
import type { Millis } from '../../core/scalars.ts';

/** Methods of a store that resolve to something about one delivery, or several. */
export type CalledMethod = 'find' | 'list' | 'message' | 'result' | 'retry' | 'cancel';

export type DeliveryCalls = {
  readonly [K in CalledMethod]: {
    readonly input: Parameters<DeliveryStore[K]>;
    readonly result: Awaited<ReturnType<DeliveryStore[K]>>;
  };
};

export interface DeliveryCall<K extends CalledMethod> {
  readonly do: 'call';
  readonly query: number;
  readonly method: K;
  readonly input: DeliveryCalls[K]['input'];
}

/** See the methods of `DeliveryStore`. A worker numbers the operations that are answered. */
export type DeliveryOperation =
  | { readonly do: 'add'; readonly query: number; readonly delivery: NewDelivery }
  | {
      readonly do: 'take';
      readonly query: number;
      readonly route: string;
      readonly now: Millis;
      readonly limit: number;
    }
  | { readonly do: 'postpone'; readonly input: Parameters<DeliveryStore['postpone']> }
  | { readonly do: 'end'; readonly input: Parameters<DeliveryStore['end']> }
  | DeliveryCall<CalledMethod>
  /** The worker takes no more deliveries. Those that it has taken end, or are postponed. */
  | { readonly do: 'stop' };

export interface DeliveryCallResult<K extends CalledMethod> {
  readonly type: 'result';
  readonly query: number;
  readonly method: K;
  readonly result: DeliveryCalls[K]['result'];
}

/** The reply to the operation with this number. */
export type OperationReply =
  | { readonly type: 'added'; readonly query: number; readonly result: AddResult }
  | { readonly type: 'taken'; readonly query: number; readonly taken: TakenDeliveries }
  | DeliveryCallResult<CalledMethod>
  /** The store cannot be read now. */
  | { readonly type: 'unavailable'; readonly query: number; readonly why: string };

export type DeliveryReply =
  | OperationReply
  /** Deliveries may be due: the worker is to take some. */
  | { readonly type: 'due' };

export function isResultOfCall<K extends CalledMethod>(
  method: K,
  reply: OperationReply,
): reply is DeliveryCallResult<K> {
  return reply.type === 'result' && reply.method === method;
}

/** Of a process that reads the totals of another one, before it has. */
export const NOTHING_STORED: DeliveryTotals = {
  counts: { waiting: 0, sending: 0, delivered: 0, dead: 0, canceled: 0, unknown: 0 },
  bytes: 0,
  oldestAt: undefined,
};
