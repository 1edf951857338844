/** What the gate looks like from outside: for metrics, the admin page and `explain`. */
import type { ErrorReason } from '../exchange/attempt-outcome.ts';
import type { LimitScope, LimitState } from '../limits/limit-state.ts';
import type { QuotaView } from '../quota/calendar/calendar-quota.ts';
import type { QuotaOwner } from '../quota/requester.ts';
import type { BlockStatus } from '../rate/breaker/active-block.ts';
import type { LatencyLimit } from '../rate/in-flight-limiter.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { ClientState } from './event-labels.ts';

export interface LimitView {
  readonly upstream: string;
  /** The name of a nested limit; empty for the upstream's own. */
  readonly nested: string;
  readonly scope: LimitScope;
  /** As in `LimitRef`. */
  readonly key: string;
  readonly state: LimitState;
  /** Infinity while open and unlimited. */
  readonly rate: PerSecond;
  readonly ceiling: PerSecond;
  /** Of these rates: see `RateSettings`. Absent if it is a request. */
  readonly unit?: string | undefined;
  /** How many requests may be in flight, if the upstream limits that or has a queue; `rate` is then derived. Otherwise undefined. */
  readonly concurrencyLimit: number | undefined;
  /** The limit that latency has shown; absent if there is none. */
  readonly latencyLimit?: LatencyLimit | undefined;
  /** Monotonic time until which nothing but a probe passes; undefined if not blocked. */
  readonly blockedUntil: Millis | undefined;
  /** The block in force, which may concern a part of all requests; absent without one. */
  readonly block?: BlockStatus | undefined;
  /** Share of the quota that is left, in [0, 1]; undefined if the upstream reports none, or one for each requester. */
  readonly quotaLeft: number | undefined;
  /** The owner of the quota that stops or paces requests. */
  readonly quotaOwner?: QuotaOwner | undefined;
  readonly queued: number;
  readonly inFlight: number;
  /** When growth resumes, during a cooldown; undefined if not known. */
  readonly cooldownUntil?: Millis | undefined;
  /** Blocked, and probes find out when that ends: `blockedUntil` is when the next probe may leave. */
  readonly isProbed?: boolean | undefined;
  /** The rate that an operator pinned: `rate` equals it, and `learnedRate` is the rate without the pin. */
  readonly pinnedRate?: PerSecond | undefined;
  readonly learnedRate?: PerSecond | undefined;
  /** An operator blocked it: `blockedUntil` is undefined if the block has no end. */
  readonly isBlockedByOperator?: boolean | undefined;
}

/** An endpoint of an upstream. */
export interface EndpointView {
  readonly upstream: string;
  /** Its host and port. */
  readonly endpoint: string;
  /** False while only trial requests are sent to it. */
  readonly isHealthy: boolean;
  /** Its last failure; absent if it has responded since. */
  readonly failure?: EndpointFailure | undefined;
  /** Monotonic time of its last response below 500; absent before the first. */
  readonly workedAt?: Millis | undefined;
}

/** An account of an upstream. */
export interface AccountView {
  readonly upstream: string;
  readonly account: string;
  readonly isQuarantined: boolean;
  /** Monotonic time at which its quarantine began; absent if it is in service. */
  readonly since?: Millis;
  /** Unrelated clients were rejected: it is the last choice of all others. */
  readonly isCommonlyRejected?: boolean;
  /** Monotonic time of its next probe; absent if it is in service. */
  readonly probeAt?: Millis;
  readonly inFlight: number;
  /** Of its own limit; Infinity while it is unlimited. */
  readonly rate: PerSecond;
}

/** Why the last attempt at an endpoint got no response, or an error. */
export interface EndpointFailure {
  /** Monotonic time. */
  readonly at: Millis;
  readonly reason: ErrorReason | 'status';
  /** The code of the error, such as `ECONNREFUSED`, or the status; undefined if it has none. */
  readonly code: string | undefined;
}

export interface ClientsView {
  readonly tracked: number;
  readonly byState: Readonly<Record<ClientState, number>>;
  /** Of the allowances of tracked clients; 1 and 1 if there are none. */
  readonly allowance: { readonly min: number; readonly mean: number };
}

/** Built on demand; costs nothing between scrapes. Metrics aggregate limits of scope client or credential. */
export interface GateView {
  readonly limits: readonly LimitView[];
  /** Absent if no upstream has accounts. */
  readonly accounts?: readonly AccountView[];
  readonly clients: ClientsView;
  /** Share of the retry budget that is left, in [0, 1], by upstream. */
  readonly budgets: ReadonlyMap<string, number>;
  /** Absent if no upstream has a configured quota. */
  readonly quotas?: readonly QuotaView[];
}
