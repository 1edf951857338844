import type { Delivery, DeliveryEnd } from '../../../core/delivery/delivery.ts';
import type { Millis } from '../../../core/scalars.ts';
import type { DeliveryCommandsParts } from './delivery-commands.ts';
import type { DeliveryBounds } from './delivery-poll.ts';

/** How many ids of events are remembered: each takes some 250 bytes of Redis' memory. */
export const MAX_REDIS_DELIVERY_EVENTS = 1_000_000;

export interface RedisDeliveryStoreParts extends DeliveryCommandsParts, DeliveryBounds {
  /** The name of this process, never used by another one. */
  readonly owner: string;
  /** Messages are encrypted with it. */
  readonly secret: string;
  readonly wallClock: () => Millis;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  /** How long a delivery of the route, and its message, are kept once it is over. */
  readonly keepFor: (route: string, end: DeliveryEnd) => Millis;
  /**
   * Since its acceptance, or its last retry by an operator: a delivery that waits for longer ends as dead, a write as unknown. Without end
   * by default.
   */
  readonly maxAge?: () => Millis;
  /** These have ended because of `maxAge`. */
  readonly onExpired?: (deliveries: readonly Delivery[]) => void;
  /** A write has ended, and its callback is stored, on this route, or there was no room for it. */
  readonly onCallback?: (route: string, isStored: boolean) => void;
  /** A delivery of the route may be due; undefined: of any route. */
  readonly onDue: (route: string | undefined) => void;
  /** A message cannot be decrypted or decoded: the replicas have different secrets, or it is damaged. Its delivery has ended. */
  readonly onUnreadable: (delivery: Delivery, end: DeliveryEnd) => void;
}
