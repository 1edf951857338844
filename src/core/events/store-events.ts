import type { Millis } from '../exchange/attempt-outcome.ts';

/** A store that replicas share; the memory of a process tells nothing. */
export type SharedStore = 'redis';

/** What it is asked for: turns to send, what became of requests, or that a client is to wait. */
export type StoreOp = (typeof STORE_OPS)[number];
export const STORE_OPS = ['lease', 'report', 'hold'] as const;

export type StoreResult = (typeof STORE_RESULTS)[number];
export const STORE_RESULTS = ['ok', 'error', 'timeout'] as const;

export type StoreEvent =
  /** A question to the store has ended, after `duration`. */
  | {
      readonly type: 'store-request';
      readonly store: SharedStore;
      readonly op: StoreOp;
      readonly result: StoreResult;
      readonly duration: Millis;
    }
  /** This process goes on alone from now on, or shares its limits again. `cause` in the words of the error, without secrets. */
  | {
      readonly type: 'store-degraded';
      readonly store: SharedStore;
      readonly isDegraded: boolean;
      readonly cause?: string | undefined;
    }
  /** What others have felt is heard no more, for Redis forbids it, or is again; it is learned with the next answer. */
  | {
      readonly type: 'store-deaf';
      readonly store: SharedStore;
      readonly isDeaf: boolean;
      readonly cause?: string | undefined;
    };
