import type { Clock, Millis } from '../scalars.ts';
import type { ClaimProgress } from './claim-progress.ts';
import type { KeyRegistry } from './key-registry.ts';
import type { KeyClaimRequest } from './key-store.ts';
import type { KeyedWrite } from './keyed-write.ts';

export interface RegistryKeyClaimOptions {
  readonly keys: KeyRegistry;
  readonly clock: Clock;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  readonly request: KeyClaimRequest;
  /** From the grant on, the write counts as sent. */
  readonly countsAsSent: boolean;
  /** A claim that was stored, and its write. */
  readonly resumed?: StoredClaim;
}

/** What is stored of a claim. */
export interface StoredClaim {
  readonly write: KeyedWrite;
  readonly progress: ClaimProgress;
}
