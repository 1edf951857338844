import type { Millis } from '../../core/scalars.ts';
import type { LeaseRequest, LeaseResponse } from './replica-protocol.ts';

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
  /** Records that a group waits at a replica. Returns at how many replicas it waits, this one included. */
  recordWaiting(group: string, replicaId: string, now: Millis): number;
  /** Records that a group is to return to a replica. Returns to how many replicas it is, this one included. */
  recordReturning(group: string, replicaId: string, now: Millis): number;
  /** Whether a group waits at another replica than this one. */
  waitsElsewhere(group: string, replicaId: string, now: Millis): boolean;
}

/** Records the groups of a replica. @returns at how many replicas each waits or, if it waits at no other one, is to return */
export function recordGroups(
  { replicaId, waitingGroups, returningGroups }: LeaseRequest,
  accounts: AccountStore,
  now: Millis,
): Pick<LeaseResponse, 'waitingReplicas' | 'returningReplicas'> {
  const waitingReplicas = waitingGroups.map((group) => accounts.recordWaiting(group, replicaId, now));
  const returningReplicas = returningGroups.map((group) => {
    const replicas = accounts.recordReturning(group, replicaId, now);
    return accounts.waitsElsewhere(group, replicaId, now) ? 0 : replicas;
  });
  return { waitingReplicas, returningReplicas };
}
