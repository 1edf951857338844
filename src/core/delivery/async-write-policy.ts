import type { Millis } from '../scalars.ts';
import type { DeliverySchedule } from './delivery-schedule.ts';

/** How a route accepts writes now and sends them later. Compiled from the configuration; immutable. */
export interface AsyncWritePolicy {
  readonly schedule: DeliverySchedule;
  /** How long a repeat of an accepted write is recognised, from its acceptance on. */
  readonly deduplicateFor: Millis;
  /** Maximum of stored writes of the route that are sent at a time, ≥ 1. */
  readonly concurrency: number;
  /** The longest response body that is kept, in bytes. */
  readonly maxResponse: number;
  /** The name of the route that sends clients the state of their writes once these have ended; absent: none. */
  readonly callback?: string | undefined;
  /** How long a write is kept after it has ended. */
  readonly keepFor: {
    /** Also of canceled ones. */
    readonly done: Millis;
    /** Also of those whose outcome is unknown. */
    readonly failed: Millis;
  };
}
