import type { Millis } from '../scalars.ts';

/** A store that replicas share. The memory of a single process emits no store events. */
export type SharedStore = 'redis';

/** `lease`: get tokens. `report`: outcomes of requests. `hold`: a client must wait. `key`: what is known of a write. `delivery`: stored deliveries. `quota`: counts of quotas. */
export type SharedStoreOperation = (typeof SHARED_STORE_OPERATIONS)[number];
export const SHARED_STORE_OPERATIONS = ['lease', 'report', 'hold', 'key', 'delivery', 'quota'] as const;

export type SharedStoreResult = (typeof SHARED_STORE_RESULTS)[number];
export const SHARED_STORE_RESULTS = ['ok', 'error', 'timeout'] as const;

/** The keys of writes to an upstream that a shared store has: unresolved ones, those in progress included, and answered ones. */
export interface SharedKeyCounts {
  readonly upstream: string;
  readonly unresolved: number;
  readonly answered: number;
}

export type StoreEvent =
  /** A request to the store ended, after `duration`. */
  | {
      readonly type: 'store-request';
      readonly store: SharedStore;
      readonly op: SharedStoreOperation;
      readonly result: SharedStoreResult;
      readonly duration: Millis;
    }
  /** This process stopped sharing its limits, or shares them again. `cause`: the error message, without secrets. */
  | {
      readonly type: 'store-degraded';
      readonly store: SharedStore;
      readonly isDegraded: boolean;
      readonly cause?: string | undefined;
    }
  /**
   * Redis forbids the subscription to updates of other replicas, or allows it again. Without it, a replica learns of them with
   * the store's next reply.
   */
  | {
      readonly type: 'store-deaf';
      readonly store: SharedStore;
      readonly isDeaf: boolean;
      readonly cause?: string | undefined;
    };
