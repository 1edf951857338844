/**
 * The messages between a replica and the backend that keeps the shared limits: one request and one response for one limit,
 * and broadcasts to all replicas. They are independent of the transport. Times are the backend's.
 */
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { LimitTerms } from '../protocol/limit-terms.ts';
import type { EncodedUsage } from '../protocol/usage-entries.ts';
import type { AppliedDecrease } from '../protocol/authoritative-limit.ts';

export interface LeaseRequest {
  /** The caller's name, which no other process has or had. */
  readonly replicaId: string;
  /** The backend's time, as the caller estimates it. */
  readonly now: Millis;
  /** As `UsageLog` writes it, in order of time. */
  readonly usage: EncodedUsage;
  /** Tokens that are unused, or used by requests that are not sent yet. */
  readonly leasedTokens: number;
  readonly inFlight: number;
  /** Of the requests in flight, those that have no response yet. */
  readonly unanswered: number;
  /** Tokens that it needs beyond `leasedTokens`. */
  readonly want: number;
  /** The total weight of the groups that wait there or are to return. */
  readonly weight: number;
  /** The smoothed duration of a call: tokens have to be leased that much earlier. */
  readonly roundTrip: Millis;
  /** The limit as the caller knows it: a backend that has lost the limit continues from there. */
  readonly known: LastKnownLimit;
  /** A random number in [0, 1): the backend draws none itself. */
  readonly random: number;
  /** See `DemandSample`: some of the groups that wait there, and of those that are to return; empty if reported lately. */
  readonly waitingGroups: readonly string[];
  readonly returningGroups: readonly string[];
}

export interface LastKnownLimit {
  /** 0 before the first response. */
  readonly epoch: number;
  /** When the caller received that epoch; −Infinity before the first response. */
  readonly since: Millis;
  /** Infinity if nothing limits. */
  readonly rate: PerSecond;
  readonly ceiling: PerSecond;
}

export interface LeaseResponse {
  /** When the request was served. */
  readonly now: Millis;
  readonly terms: ReplicaTerms;
  /** When each token may be used, in order. While blocked, there is one at most: the probe. */
  readonly slots: readonly Millis[];
  /** When to ask again for tokens that were not granted; Infinity if all were. */
  readonly askAgainAt: Millis;
  /** At how many replicas each of `waitingGroups` waits, the caller included. */
  readonly waitingReplicas: readonly number[];
  /** To how many replicas each of `returningGroups` is to return, the caller included; 0 if it waits at another one. */
  readonly returningReplicas: readonly number[];
  /** The decreases of the rate that this request caused. */
  readonly decreases: readonly Pick<AppliedDecrease, 'cause' | 'from' | 'to'>[];
  /** The terms are to be broadcast: replicas need them before their next call. */
  readonly shouldBroadcast: boolean;
}

/** The state of a shared limit, with the totals of all replicas. Times are the backend's. */
export interface ReplicaTerms extends LimitTerms {
  /** Requests in flight from all replicas. */
  readonly inFlight: number;
  /** Requests that all replicas have ever sent. */
  readonly sendCount: number;
  /** Replicas that have called lately, the caller included. */
  readonly replicas: number;
}

/** The terms of a limit that has changed, for all replicas. */
export interface TermsBroadcast {
  /** As returned by the function `limitId`. */
  readonly limitId: string;
  readonly terms: ReplicaTerms;
  /** When the broadcast was made. */
  readonly now: Millis;
}

/** What a meter has to report to the backend. */
export interface LeaseReport {
  readonly want: number;
  readonly usage: EncodedUsage;
  readonly leasedTokens: number;
  readonly inFlight: number;
  readonly unanswered: number;
  readonly known: LastKnownLimit;
}
