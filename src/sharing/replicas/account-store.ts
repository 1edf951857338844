import type { Millis } from '../../core/scalars.ts';

/** Stores the replicas' accounts of one limit. The cost of each call is independent of the number of replicas. */
export interface AccountStore {
  /** As encoded by `ReplicaAccount.encode`; undefined if there is none. */
  readAccount(replicaId: string): readonly number[] | undefined;
  /** Stores an account of a replica that has called just now. */
  writeAccount(replicaId: string, numbers: readonly number[], now: Millis): void;
  deleteAccount(replicaId: string): void;
  /** Replicas that have not called since `before`, `max` at most. */
  silentSince(before: Millis, max: number): readonly string[];
  /** The number of stored accounts. */
  countAccounts(): number;
  /** Records that a client waits at a replica. Returns at how many replicas it waits, this one included. */
  recordWaiting(client: string, replicaId: string, now: Millis): number;
}
