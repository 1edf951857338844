/**
 * What a process says to the pool in which the limits of many are kept, and what it hears: one call, one answer, one
 * limit. Neither knows how it travels. Times are the pool's.
 */
import type { LimitState } from '../../core/events/proxy-events.ts';
import type { Block } from '../../core/rate/breaker/active-block.ts';
import type { QuotaOwner } from '../../core/quota/requester.ts';
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { Happenings } from '../protocol/usage-entries.ts';
import type { CutTold } from '../protocol/authoritative-limit.ts';

export interface Call {
  /** Who calls: no two processes are called the same, not even one after the other. */
  readonly holder: string;
  /** What the caller takes the pool's time to be. */
  readonly now: Millis;
  /** As `HappeningLog` writes them, in order of their times; for a serial, how many were in flight. */
  readonly happenings: Happenings;
  /** Tokens that it has and has not used, or that it has used for what is not sent yet. */
  readonly lent: number;
  readonly inFlight: number;
  /** Tokens that it wants beyond those. */
  readonly want: number;
  /** Of all clients that wait there, as they are weighed there. */
  readonly weight: number;
  /** How long a call has taken lately: tokens have to be lent as much earlier. */
  readonly roundTrip: Millis;
  /** How it knows the limit to stand: a pool that has lost it goes on from there. */
  readonly known: Known;
  /** The pool has none of its own: in [0, 1). */
  readonly chance: number;
  /** Some of the clients that wait there; empty where they were told of a moment ago. */
  readonly clients: readonly string[];
}

export interface Known {
  /** 0 where it has heard nothing yet. */
  readonly epoch: number;
  /** When it heard of that. */
  readonly since: Millis;
  /** Infinity where nothing limits. */
  readonly rate: PerSecond;
  readonly ceiling: PerSecond;
}

export interface Answer {
  /** When the call was heard. */
  readonly now: Millis;
  readonly terms: PoolTerms;
  /** When each token may be used, in order. While blocked there is one at most: the probe. */
  readonly slots: readonly Millis[];
  /** When to ask again for what is still wanted; Infinity where nothing is. */
  readonly againAt: Millis;
  /** With how many each of the clients waits that were told of, the caller included. */
  readonly waitsWith: readonly number[];
  /** What has cut the rate of what was told in this call. */
  readonly cuts: readonly Pick<CutTold, 'cause' | 'from' | 'to'>[];
  /** Those who have asked for nothing are to hear of these terms too. */
  readonly isNews: boolean;
}

/** A limit as it stands in the pool. */
export interface PoolTerms {
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
  /** The probe of a blocked limit has been lent, and not to the caller. */
  readonly isProbeOut: boolean;
  readonly quotaLeft: number | undefined;
  /** Whom the quota in force is about; undefined where none is. */
  readonly quotaOwner: QuotaOwner | undefined;
  /** Requesters have quotas of their own: each is held by what it is told. */
  readonly isQuotaApart: boolean;
  /** The weight of what waits with the others. */
  readonly others: number;
  /** For how long a token may be used after its time. */
  readonly validFor: Millis;
  /** Requests in flight from all. */
  readonly inFlight: number;
  /** Requests sent by all, ever. */
  readonly sends: number;
  /** Who has been heard lately, the caller included. */
  readonly holders: number;
}

/** Of a limit that has changed: for all who share it. */
export interface News {
  /** As `nameOf` has it. */
  readonly name: string;
  readonly terms: PoolTerms;
  /** When it was made. */
  readonly now: Millis;
}

/** What a meter has to tell the pool next. */
export interface Told {
  readonly want: number;
  readonly happenings: Happenings;
  readonly lent: number;
  readonly inFlight: number;
  readonly known: Known;
}
