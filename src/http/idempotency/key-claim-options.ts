import type { QueueOccupant } from '../../core/admission/queue-occupancy.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { KeyRecord } from '../../core/idempotency/key-record.ts';
import type { RetryPolicy } from '../../core/retry/retry-policy.ts';
import type { KeyRegistry } from '../../core/idempotency/key-registry.ts';
import type { WriteIdentity } from '../../core/idempotency/keyed-write.ts';
import type { IdempotencySettings } from './idempotency-types.ts';

/** Receives the result of a claim: one of the two is called once, unless the claim is cancelled. */
export interface KeyClaimListener {
  /** @param record what earlier requests with this key did, as far as is known */
  onClaimed(record: KeyRecord | undefined): void;
  /** @param mayBeDone the request that holds the key may have done the write */
  onClaimRefused(why: 'key_in_use', mayBeDone: boolean): void;
}

export interface KeyClaimOptions {
  readonly keys: KeyRegistry;
  readonly clock: Clock;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  readonly identity: WriteIdentity;
  /** Counted as queued while the claim waits. */
  readonly place: QueueOccupant;
  readonly concurrent: IdempotencySettings['concurrent'];
  /** How long the upstream remembers the key; undefined if not known. */
  readonly ttl: Millis | undefined;
  readonly policy: RetryPolicy;
  /** Each of several endpoints knows its own keys only, and the method allows the write to go to any of them. */
  readonly mayUseOtherEndpoints?: boolean;
}
