/** The messages between a worker and its primary, which keeps the deliveries. Bodies are buffers: the channel copies them as they are. */
import type { AddResult, DeliveryStore, NewDelivery, TakenDeliveries } from '../../core/delivery/delivery-store.ts';
import type { Millis } from '../../core/scalars.ts';

/** Methods of a store that resolve to something about one delivery, or several. */
export type AskedMethod = 'find' | 'list' | 'message' | 'result' | 'retry' | 'cancel';

export type DeliveryQueries = {
  readonly [K in AskedMethod]: {
    readonly input: Parameters<DeliveryStore[K]>;
    readonly result: Awaited<ReturnType<DeliveryStore[K]>>;
  };
};

export interface DeliveryQuery<K extends AskedMethod> {
  readonly do: 'ask';
  readonly query: number;
  readonly method: K;
  readonly input: DeliveryQueries[K]['input'];
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
  | DeliveryQuery<AskedMethod>
  /** The worker takes no more deliveries. Those that it has taken end, or are postponed. */
  | { readonly do: 'stop' };

export interface DeliveryQueryResult<K extends AskedMethod> {
  readonly type: 'result';
  readonly query: number;
  readonly method: K;
  readonly result: DeliveryQueries[K]['result'];
}

/** The reply to the operation with this number. */
export type OperationReply =
  | { readonly type: 'added'; readonly query: number; readonly result: AddResult }
  | { readonly type: 'taken'; readonly query: number; readonly taken: TakenDeliveries }
  | DeliveryQueryResult<AskedMethod>
  /** The store cannot be read now. */
  | { readonly type: 'unavailable'; readonly query: number; readonly why: string };

export type DeliveryReply =
  | OperationReply
  /** Deliveries may be due: the worker is to take some. */
  | { readonly type: 'due' };

export function isResultOf<K extends AskedMethod>(method: K, reply: OperationReply): reply is DeliveryQueryResult<K> {
  return reply.type === 'result' && reply.method === method;
}
