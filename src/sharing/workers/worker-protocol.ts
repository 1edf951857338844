/**
 * The messages between a limit server and its workers. They are independent of the transport: the channel between a primary
 * and its workers, or a simulation. Times are of one clock that all of them read.
 */
import type { AccountNotice } from '../../core/accounts/account-notice.ts';
import type { ClientHold } from '../../core/limits/client-holds.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { Millis } from '../../core/scalars.ts';
import type { DemandSample } from '../protocol/demand-groups.ts';
import type { LimitTerms } from '../protocol/limit-terms.ts';
import type { EncodedUsage } from '../protocol/usage-entries.ts';

/** From a worker: its usage since the last report, its demand, new holds, and notices of accounts. */
export interface UsageReport {
  readonly limits: readonly LimitUsageReport[];
  readonly holds: readonly ClientHold[];
  /** Absent if there are none. */
  readonly accounts?: readonly AccountNotice[];
}

export interface LimitUsageReport {
  readonly ref: LimitRef;
  /** As `UsageLog` writes it, in order of time. */
  readonly usage: EncodedUsage;
  /** Absent if it has not changed. */
  readonly demand?: TokenDemand;
}

/** Holds until the next demand; each token granted reduces it by one. */
export interface TokenDemand {
  /** Waiting requests beyond the tokens in hand. */
  readonly want: number;
  /** Tokens received so far, so that tokens in transit are not granted twice. */
  readonly received: number;
  /** The total weight of the groups that wait there or are to return. */
  readonly weight: number;
  readonly groups: DemandSample;
}

/** From the limit server. */
export interface LimitUpdates {
  readonly limits: readonly LimitUpdate[];
  readonly holds: readonly ClientHold[];
  /** From other workers; absent if there are none. */
  readonly accounts?: readonly AccountNotice[];
}

export interface LimitUpdate {
  readonly ref: LimitRef;
  readonly terms: LimitTerms;
  /** When each new token may be used, in order. While blocked, there is one at most: the probe. */
  readonly slots: readonly Millis[];
  /** The shares of the worker's groups that do not count there with all of their weight; absent if they have not changed. */
  readonly shares?: GroupShares;
}

/** By group. */
export interface GroupShares {
  readonly waiting: readonly GroupShare[];
  readonly returning: readonly GroupShare[];
}

export type GroupShare = readonly [group: string, share: number];
