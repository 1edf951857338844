/**
 * What a lender and its leaseholders say to each other. Neither knows how it travels: between a primary and its workers,
 * in a simulation, or to a store that other machines ask as well. Times are of one clock that all of them read.
 */
import type { LimitState } from '../../core/events/proxy-events.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { Block } from '../../core/rate/breaker/active-block.ts';
import type { QuotaOwner } from '../../core/quota/requester.ts';
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { Happenings } from '../protocol/usage-entries.ts';

/** From a leaseholder: what happened there since the last report, and what it needs. */
export interface Report {
  readonly limits: readonly LimitReport[];
  readonly holds: readonly Hold[];
}

export interface LimitReport {
  readonly ref: LimitRef;
  /** As `HappeningLog` writes them, in order of their times. */
  readonly happenings: Happenings;
  /** Absent where nothing has changed. */
  readonly demand?: Demand;
}

/** Stands until another is told; each token that is lent is one less. */
export interface Demand {
  /** Requests that wait, and have no token in hand. */
  readonly want: number;
  /** Tokens that have come in all: those on their way are not wanted again. */
  readonly heard: number;
  /** Of all clients that wait, as they are weighed there. */
  readonly weight: number;
  /** Some of the clients that wait; absent where they were told of a moment ago. */
  readonly clients?: readonly string[];
}

/** From the lender. */
export interface Tidings {
  readonly limits: readonly LimitTidings[];
  readonly holds: readonly Hold[];
}

export interface LimitTidings {
  readonly ref: LimitRef;
  readonly terms: Terms;
  /** Tokens: when each may be used, in order. While blocked there is one at most: the probe. */
  readonly slots: readonly Millis[];
  /** As `Limit.parts`, where that has changed. */
  readonly parts?: readonly (readonly [client: string, part: number])[];
}

/** A limit as it stands with the lender. */
export interface Terms {
  /** Grows with each cut: tokens of an earlier one are void. */
  readonly epoch: number;
  readonly phase: LimitState;
  /** Nothing limits: requests go at once, and are only told of. */
  readonly isFree: boolean;
  readonly rate: PerSecond;
  readonly ceiling: PerSecond;
  readonly places: number | undefined;
  readonly blockedUntil: Millis | undefined;
  /** The block that stands; undefined where none does. */
  readonly block: Block | undefined;
  /** When the next request may be expected to leave. */
  readonly expectedAt: Millis;
  /** The probe of a blocked limit has been lent to somebody else, or sent. */
  readonly isProbeOut: boolean;
  readonly quotaLeft: number | undefined;
  /** Whom the quota in force is about; undefined where none is. */
  readonly quotaOwner: QuotaOwner | undefined;
  /** Requesters have quotas of their own: each is held by what it is told. */
  readonly isQuotaApart: boolean;
  /** The weight of what waits with the other leaseholders. */
  readonly others: number;
  /** For how long a token may be used after its time. */
  readonly validFor: Millis;
}

/** An upstream told one client to wait, or one asks for far more than its share. */
export interface Hold {
  /** What it is remembered by: upstream and client, with a NUL between. */
  readonly client: string;
  /** −Infinity where it need not wait. */
  readonly until: Millis;
  /** What its allowance has fallen to; absent where it has not. */
  readonly allowance?: number;
}
