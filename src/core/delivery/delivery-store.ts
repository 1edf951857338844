import type { ResourceBound } from '../overload/resource-bound.ts';
import type { Millis } from '../scalars.ts';
import type { Delivery, DeliveryAttempt, DeliveryEnd, DeliveryMessage, DeliveryResult } from './delivery.ts';

/** A delivery to be stored. It is due at once. */
export interface NewDelivery
  extends Pick<
    Delivery,
    'id' | 'kind' | 'route' | 'upstream' | 'acceptedAt' | 'owner' | 'sender' | 'eventId' | 'orderKey'
  > {
  readonly message: DeliveryMessage;
  /** An event id is remembered until this time. */
  readonly duplicatesUntil: Millis;
}

export type AddResult =
  /** It survives the end of this process, and a loss of power as the store is configured. */
  | { readonly kind: 'stored' }
  /** The event was accepted before, as the delivery with this id. */
  | { readonly kind: 'duplicate'; readonly id: string }
  /** The store holds as many deliveries, or bytes, as it may. */
  | { readonly kind: 'full' }
  /** Nothing can be stored now: the disk is full, for example. `mayBeStored`: the store has the delivery, and has not replied. */
  | { readonly kind: 'unavailable'; readonly why: string; readonly mayBeStored?: boolean };

/** A delivery to be sent now. */
export interface DueDelivery {
  readonly delivery: Delivery;
  readonly message: DeliveryMessage;
}

export interface DeliveryFilter {
  readonly states?: readonly Delivery['state']['kind'][];
  readonly route?: string;
  /** By acceptance; without it, the oldest first. */
  readonly order?: 'oldest' | 'newest';
  /** Only those after the one with this id in this order: older ones if the newest are first. */
  readonly after?: string;
  readonly limit: number;
}

/** Deliveries by state, and what they occupy. */
export interface DeliveryTotals {
  readonly counts: Readonly<Record<Delivery['state']['kind'], number>>;
  /** Of the messages that are stored. */
  readonly bytes: number;
  /** When the oldest one that has not ended was accepted. */
  readonly oldestAt: Millis | undefined;
}

/** Deliveries that were claimed to be sent now. */
export interface TakenDeliveries {
  readonly deliveries: readonly DueDelivery[];
  /** When the next delivery of the route is due that is not being sent; undefined if none waits. */
  readonly nextDueAt: Millis | undefined;
}

/** The store cannot be read or changed now. `message` is a sentence for an operator. */
export class DeliveriesUnavailable extends Error {}

/** What operators read and change. */
export interface DeliveryInspection
  extends Pick<DeliveryStore, 'totals' | 'find' | 'list' | 'message' | 'result' | 'retry' | 'cancel'> {
  /** Reads the totals again, if another process has them. */
  readonly refresh?: () => Promise<void>;
}

/**
 * Deliveries that outlive the process, which may be in another one. Callbacks run in a later turn of the event loop. Times are on the
 * wall clock. `find`, `list`, `message`, `result`, `retry` and `cancel` reject with `DeliveriesUnavailable`; the others never reject.
 */
export interface DeliveryStore {
  readonly bounds: readonly ResourceBound[];
  /** Calls back once it is stored, or will not be. */
  add(delivery: NewDelivery, onAdded: (result: AddResult) => void): void;
  /**
   * Claims up to `limit` deliveries of the route that are due: of each client those due first first. Of deliveries with the same order
   * key only the first one that has not ended can be due. They are `sending` until `postpone` or `end` is called. If the process ends
   * before, they are due again. None while the store is unavailable.
   *
   * Clients share the places of the route: those that hold the fewest come first.
   * @param concurrency places of the route in all, of which a client leaves some to others; infinity by default: it leaves none
   */
  takeDue(route: string, now: Millis, limit: number, concurrency?: number): Promise<TakenDeliveries>;
  /** An attempt has not been acknowledged: the next one begins at `until`. @param attempt undefined: none was made, as at a shutdown */
  postpone(id: string, until: Millis, attempt: DeliveryAttempt | undefined): void;
  /**
   * @param attempt the last one; undefined if none was made
   * @param result the response that ended it; it is removed with the delivery, and if that is retried
   * @param callback of a write, stored with its end, unless the store is full
   */
  end(
    id: string,
    end: DeliveryEnd,
    at: Millis,
    attempt: DeliveryAttempt | undefined,
    result?: DeliveryResult,
    callback?: NewDelivery,
  ): void;
  find(id: string): Promise<Delivery | undefined>;
  /** In the order of acceptance, or in the opposite one. */
  list(filter: DeliveryFilter): Promise<readonly Delivery[]>;
  /** Undefined if there is no such delivery, or its message has expired. */
  message(id: string): Promise<DeliveryMessage | undefined>;
  /** Undefined if there is no such delivery, it ended without a result, or that cannot be decrypted. */
  result(id: string): Promise<DeliveryResult | undefined>;
  /** Makes a dead, canceled, unknown or waiting delivery due now, with a new schedule. Resolves to whether the store accepted the change. */
  retry(id: string, now: Millis): Promise<boolean>;
  /** Ends a delivery that waits. Resolves to whether the store accepted the change. */
  cancel(id: string, now: Millis): Promise<boolean>;
  /** As last known. */
  readonly totals: DeliveryTotals;
}
