import type { Delivery, DeliveryEnd } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';
import type { GroupCommit } from '../sqlite/group-commit.ts';

export interface SqliteDeliveryStoreOptions {
  /** Something requests a commit regularly: what is over is removed with one. */
  readonly commit: GroupCommit;
  /** Messages are encrypted with it. */
  readonly secret: string;
  readonly wallClock: () => Millis;
  /** The sum of the steps of the wall clock: see `StoredWrites.clockShift`. */
  readonly clockShift?: () => Millis;
  /** How long a delivery of the route, and its message, are kept once it is over. */
  readonly keepFor: (route: string, end: DeliveryEnd) => Millis;
  /**
   * Since its acceptance, or its last retry by an operator: a delivery that waits for longer ends as dead, a write as unknown. Without end
   * by default.
   */
  readonly maxAge?: () => Millis;
  /** These ended because of `maxAge`. */
  readonly onExpired?: (deliveries: readonly Omit<Delivery, 'state'>[]) => void;
  /** A write has ended, and its callback is stored, on this route, or there was no room for it. */
  readonly onCallback?: (route: string, isStored: boolean) => void;
  /** A stored change may have made a delivery of the route due, now or later: see `takeDue`. */
  readonly onDue?: (route: string) => void;
  /** A message cannot be decrypted or decoded: the secret has changed, or the row is damaged. Its delivery has ended. */
  readonly onUnreadable?: (delivery: Omit<Delivery, 'state'>, end: DeliveryEnd) => void;
  /** The database cannot be read: no delivery is sent. */
  readonly onProblem?: (error: unknown) => void;
  readonly maxCount?: number;
  readonly maxBytes?: number;
  readonly maxEvents?: number;
}
