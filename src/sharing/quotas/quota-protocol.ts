/**
 * The calls of a process that leases parts of calendar quotas, and what the keeper of the counts replies. They are independent of
 * the transport: the channel between a primary and its workers, or Redis. Except for `since`, times are durations from the reply on.
 */
import type { CalendarQuotaSettings, QuotaView } from '../../core/quota/calendar/calendar-quota.ts';
import type { EpochMillis } from '../../core/quota/calendar/quota-period.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';

export interface QuotaCall {
  readonly upstream: string;
  readonly name: string;
  /** See `CalendarQuotaSettings`. */
  readonly key?: string | undefined;
  /** See `periodId`. */
  readonly period: string;
  /** Parts to lease. */
  readonly want: number;
  /** They are for requests without priority, too. */
  readonly isOrdinary: boolean;
  /** A request with priority waits: a part of the reserve will do if there is no other. */
  readonly mayUseReserve: boolean;
  /** Requests that were sent without a part, such as in observe mode: they count nevertheless. */
  readonly overdrawn: number;
  /** Unused parts. */
  readonly returns: readonly QuotaReturn[];
  /** Parts in hand, without those that are returned. */
  readonly held: number;
  /** `QuotaTerms.since` of the last reply; undefined before the first one. */
  readonly since?: EpochMillis | undefined;
}

type OnTerms = (terms: QuotaTerms | undefined) => void;

/** Calls the keeper of the count. Its terms, or undefined if it does not respond, arrive after this has returned. */
export type CallKeeper = (call: QuotaCall, onTerms: OnTerms, settings: CalendarQuotaSettings) => void;

export interface QuotaReturn {
  /** `QuotaTerms.since` of the reply that granted them. */
  readonly since: EpochMillis;
  readonly count: number;
}

export interface QuotaTerms {
  readonly granted: number;
  /** Granted in addition, for requests with priority only. */
  readonly grantedReserve: number;
  /** The beginning of the part of the period in which what is granted counts, by the clock of the keeper. */
  readonly since: EpochMillis;
  /** Time until its end: what is in hand is void then. */
  readonly validFor: Millis;
  /** For requests without priority. */
  readonly ordinary: QuotaDelays;
  readonly priority: QuotaDelays;
  /** How many processes have requested parts lately, this one included: they divide an even pace. */
  readonly sharers: number;
  /** Parts that other processes hold, and may return in part. */
  readonly heldByOthers: number;
  /** The store has lost counts, and first collects what the processes know of them. */
  readonly isSettling?: boolean;
  readonly view: QuotaView;
}

export interface QuotaDelays {
  /** By the count; 0 if it is not used up. */
  readonly untilReset: Millis;
  /** By the count and an even pace; 0 if more can be leased now. */
  readonly delay: Millis;
  /** Of an even pace, for all processes; Infinity without one. */
  readonly rate: PerSecond;
}
