import type { Millis } from '../../core/scalars.ts';

/** The timing of leases, which depends on the latency between the server and its workers. */
export interface LeaseTiming {
  /** How long before its time a token is leased, so that it arrives in time. */
  readonly leadTime: Millis;
  /** How far ahead tokens are leased, once one is due within `leadTime`. */
  readonly horizon: Millis;
  /** The usual maximum delay of an update. */
  readonly deliveryTime: Millis;
  /** How long a token may be used after its time. */
  readonly validFor: Millis;
  /** The unused tokens of a worker without a report for this long are reclaimed. */
  readonly silenceTimeout: Millis;
}

/** For processes of one machine. */
export const WORKER_LEASE_TIMING: LeaseTiming = {
  leadTime: 5,
  horizon: 15,
  deliveryTime: 1,
  validFor: 25,
  silenceTimeout: 1000,
};
