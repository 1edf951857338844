/**
 * Everything that happens, as a union. The gate and the exchange tell it; metrics, logs, explanations and traces listen.
 * Names of routes and upstreams are the configured ones; a client is told by its hashed identity, never by its key.
 */
import type { Block } from '../rate/breaker/active-block.ts';
import type { QuotaOwner } from '../quota/requester.ts';
import type { BlockedPart } from '../rate/breaker/request-attributes.ts';
import type { OverloadCause } from '../overload/load-shedding.ts';
import type { StoreEvent } from './store-events.ts';
import type {
  ErrorReason,
  KeyRefusal,
  Millis,
  PerSecond,
  Refusal,
  RetryEnd,
  RetryReason,
} from '../exchange/attempt-outcome.ts';

export type LimitState = (typeof LIMIT_STATES)[number];
export const LIMIT_STATES = ['open', 'backoff', 'cooldown', 'restoring', 'blocked'] as const;
export type ClientState = 'normal' | 'held' | 'backoff' | 'cooldown' | 'restoring';
export type Scope = 'upstream' | 'client' | 'credential';

/** Why a rate was cut: the `cause` label of `tidegate_ratelimit_cuts_total`. */
export type CutCause = (typeof CUT_CAUSES)[number];
export const CUT_CAUSES = ['first', 'small', 'heavy', 'places', 'blocked', 'errors'] as const;

/** How a request ended for its client: the `outcome` label of `tidegate_requests_total`. */
export type RequestOutcome =
  | 'forwarded'
  | 'recovered'
  /** Whoever asked about it was told that it may pass, and sends it. */
  | 'checked'
  /** What a browser asks before it asks: answered here. */
  | 'preflight'
  | 'refused'
  | 'queue_timeout'
  | 'upstream_error'
  | 'unknown'
  | 'client_gone';

/** Who has written a Retry-After: the `from` label of `tidegate_retry_after_total`. */
export type RetryAfterSource = (typeof RETRY_AFTER_SOURCES)[number];
export const RETRY_AFTER_SOURCES = ['upstream', 'tidegate'] as const;

/** What a poll came to: the `outcome` label of `tidegate_polls_total`. */
export type PollOutcome = (typeof POLL_OUTCOMES)[number];
export const POLL_OUTCOMES = ['not_ready', 'ready', 'failed', 'refused', 'client_gone'] as const;

/** The gate's answer to an arrival: at once, after a queue, or no, and why. */
export interface Decision {
  readonly decision: 'passed' | 'queued' | 'refused';
  /** Of a refusal. */
  readonly why: Refusal | undefined;
}

/** Why an answer is broken off that its client leaves unread: it reads too slowly, or others wait for the connection. */
export const CUT_REASONS = ['slow_reader', 'gave_way'] as const;
export type CutReason = (typeof CUT_REASONS)[number];

/** What becomes of idempotency keys: the `event` label of `tidegate_idempotency_keys_total`. */
export type KeyEvent = (typeof KEY_EVENTS)[number];
export const KEY_EVENTS = ['minted', 'awaited', 'key_in_use', 'key_expired'] as const satisfies readonly (
  | KeyRefusal
  | 'minted'
  | 'awaited'
)[];

export type TideEvent =
  /** A request came in and was routed. Its `done` follows, always. */
  | { readonly type: 'arrived'; readonly route: string }
  /** A request has changed its connection to another protocol, until its `done`. */
  | { readonly type: 'upgraded'; readonly route: string }
  /** Of an arrival, or of a retry that asks again. Where we only observe: what would have been decided. */
  | ({ readonly type: 'decision'; readonly upstream: string } & Decision)
  /** A queued request left the queue, admitted or not, after `waited`. */
  | { readonly type: 'dequeued'; readonly upstream: string; readonly waited: Millis; readonly admitted: boolean }
  /**
   * One attempt's head, or its failure. `code` is the status, or the reason of the error. `attempt` counts from 1. `request`
   * is the id of the request, where it has one.
   */
  | {
      readonly type: 'attempt';
      readonly upstream: string;
      readonly attempt: number;
      readonly code: number | ErrorReason;
      readonly took: Millis;
      readonly request?: string | undefined;
    }
  /** What came of a request that was checked here and sent by somebody else, in the word of who sent it. */
  | { readonly type: 'reported'; readonly upstream: string; readonly status: number }
  /** The upstream said 429 (or what its preset calls throttled). `reason` is the upstream's word, or `unspecified`. */
  | { readonly type: 'throttled'; readonly upstream: string; readonly reason: string }
  /** A retry was begun: it sleeps `delay`, because of `reason`, by our back-off or by the upstream's hint. */
  | {
      readonly type: 'retry';
      readonly upstream: string;
      readonly reason: RetryReason;
      readonly delay: Millis;
      readonly source: 'backoff' | 'hint';
    }
  /** What a poll came to that we made for a client that waits: the second and later of a request. */
  | { readonly type: 'poll'; readonly route: string; readonly outcome: PollOutcome }
  /** A client is waited for from now on; or no more, `waited` after it had come. */
  | { readonly type: 'poll-wait'; readonly route: string; readonly waited: Millis | undefined }
  /** A client that asks again and again was told when to come back. */
  | { readonly type: 'poll-slowed'; readonly route: string }
  /** An idempotency key was minted, or was not simply free: it was waited for, in use, or is expired. */
  | { readonly type: 'key'; readonly upstream: string; readonly event: KeyEvent }
  /** An answer was broken off because its client does not read it. */
  | { readonly type: 'reader-cut'; readonly upstream: string; readonly why: CutReason }
  /** The wish to retry ended; at most once a request. */
  | { readonly type: 'retry-end'; readonly upstream: string; readonly outcome: RetryEnd }
  /** A limit's rate was cut. */
  | {
      readonly type: 'cut';
      readonly upstream: string;
      /** The name of a nested one; absent for the upstream's own. */
      readonly limit?: string;
      readonly scope: Scope;
      readonly cause: CutCause;
      readonly from: PerSecond;
      readonly to: PerSecond;
    }
  | {
      readonly type: 'limit-state';
      readonly upstream: string;
      readonly limit?: string;
      readonly scope: Scope;
      readonly from: LimitState;
      readonly to: LimitState;
      /** What is blocked from now on; absent where nothing is. */
      readonly blocked?: BlockedPart;
    }
  /** A client's allowance was cut to `allowance` in (0, 1]. */
  | { readonly type: 'client-cut'; readonly upstream: string; readonly client: string; readonly allowance: number }
  | {
      readonly type: 'client-state';
      readonly upstream: string;
      readonly client: string;
      readonly from: ClientState;
      readonly to: ClientState;
    }
  /** An endpoint failed too often in a row, or at its trial: nothing is sent there for `time`. */
  | {
      readonly type: 'endpoint-ejected';
      readonly upstream: string;
      readonly endpoint: string;
      readonly time: Millis;
    }
  /** It is sent to again: it has passed its trial, or none of the others works either. */
  | {
      readonly type: 'endpoint-returned';
      readonly upstream: string;
      readonly endpoint: string;
      readonly cause: 'trial' | 'panic';
    }
  /** A client was forgotten to make room. */
  | { readonly type: 'client-evicted'; readonly cause: 'calm' | 'troubled' }
  /** This process cannot keep up, and sheds requests; or that is over, and `shed` were turned away. Once an episode. */
  | {
      readonly type: 'overload';
      readonly began: boolean;
      readonly cause: OverloadCause;
      readonly delay: Millis;
      readonly heapUsed: number;
      readonly shed: number;
    }
  /** The configuration was read again: it is in effect, or `problem` says in lines why the one before goes on. */
  | {
      readonly type: 'reload';
      readonly ok: boolean;
      readonly problem?: string | undefined;
      /** Paths of settings, such as `upstreams.payments.timeout`; never what they hold. */
      readonly changed?: readonly string[];
    }
  | { readonly type: 'done'; readonly record: RequestRecord }
  | OperatorEvent
  | StoreEvent;

/** Somebody has told us what to do. `by`: from where. */
export type OperatorEvent = { readonly type: 'operator'; readonly by: string } & (
  | { readonly action: 'pin'; readonly upstream: string; readonly rate: PerSecond }
  | { readonly action: 'unpin' | 'unblock'; readonly upstream: string }
  /** For `time`, or until it is unblocked. */
  | { readonly action: 'block'; readonly upstream: string; readonly time: Millis | undefined }
  | { readonly action: 'reset'; readonly client: string }
  | { readonly action: 'drain' }
);

/** What became of one request. */
export interface RequestRecord {
  readonly id: string;
  /** When its head had been read, by the clock that exchanges run by. */
  readonly at: Millis;
  readonly route: string;
  readonly upstream: string;
  readonly method: string;
  /** Path without its query: queries carry secrets. */
  readonly path: string;
  /** Hashed identity of the client. */
  readonly client: string;
  /** Of a client that the configuration names. */
  readonly clientName?: string | undefined;
  /** What the client was told; 0 when it had gone before a head. */
  readonly status: number;
  readonly outcome: RequestOutcome;
  /** In a word, why it ended so: a Refusal, an ErrorReason, a RetryEnd; undefined when all went well. */
  readonly reason: string | undefined;
  readonly attempts: number;
  /** How often it was asked for because it was not ready, the first time included; absent where it was asked for once. */
  readonly polls?: number | undefined;
  /** Time spent in the queue, and asleep before retries and polls. */
  readonly queued: Millis;
  readonly slept: Millis;
  /** Arrival to the response head, and to the end of the response. */
  readonly toHead: Millis;
  readonly took: Millis;
  /** Seconds in Retry-After: ours, or the upstream's on a 429 or a 503; undefined when there is none that can be read. */
  readonly retryAfter: number | undefined;
  /** Whose Retry-After that is; absent when there is none. */
  readonly retryAfterFrom?: RetryAfterSource | undefined;
  /** The body was cut short after its head had gone out. */
  readonly cut: boolean;
  /** Why its last attempt failed, in the word of the operating system or of OpenSSL, or who it was that was not trusted. */
  readonly cause?: string | undefined;
  /** Bytes after the protocol was changed; absent where it was not. */
  readonly carried?: { readonly toUpstream: number; readonly toClient: number } | undefined;
  /** Only where we observe: what would have become of it. Absent when nothing had been decided, and in enforce mode. */
  readonly wouldHave?: Decision | undefined;
  /** Only where we observe: why its answer would have been retried; undefined when it would not have been. */
  readonly wouldRetry?: RetryReason | undefined;
  /** For people, where the answer is our own: why it is what it is. */
  readonly detail?: string | undefined;
  /** How the wish to retry ended, where there was one. */
  readonly retryEnd?: RetryEnd | undefined;
  /** The idempotency key that it was given here; absent where its client has one of its own, or it has none. */
  readonly mintedKey?: string | undefined;
  /** Of the trace that it is a part of (W3C Trace Context), in hex; absent where it is of none. */
  readonly traceId?: string | undefined;
}

export type Listen = (event: TideEvent) => void;

/** What a limit looks like from outside, for metrics, the page and `explain`. */
export interface LimitView {
  readonly upstream: string;
  /** Empty for the upstream's own; else the name of a nested one. */
  readonly nested: string;
  readonly scope: Scope;
  /** As of `LimitRef`. */
  readonly key: string;
  readonly state: LimitState;
  /** Infinity while open and unlimited. */
  readonly rate: PerSecond;
  readonly ceiling: PerSecond;
  /** How many may be in flight, where that turned out to be the limit: then `rate` is what comes of it. Else undefined. */
  readonly places: number | undefined;
  /** Monotonic time until which nothing but a probe passes; undefined when not blocked. */
  readonly blockedUntil: Millis | undefined;
  /** The block that stands, which may be about a part of all requests; absent where none does. */
  readonly block?: Block | undefined;
  /** Quota left as a share of the whole, in [0, 1]; undefined when the upstream tells none, or each requester its own. */
  readonly quotaLeft: number | undefined;
  /** Whom a quota is about that stops or paces it. */
  readonly quotaOwner?: QuotaOwner | undefined;
  readonly queued: number;
  readonly inFlight: number;
  /** When growth begins again, while it is in cooldown; undefined where that is not known. */
  readonly cooldownUntil?: Millis | undefined;
  /** Blocked, and probes find out when that is over: `blockedUntil` is when the next may leave. */
  readonly isProbed?: boolean | undefined;
  /** What an operator holds the rate at: then `rate` is that, and `learned` what it would be. */
  readonly pinned?: PerSecond | undefined;
  readonly learned?: PerSecond | undefined;
  /** An operator lets nothing pass: `blockedUntil` is undefined where that has no end. */
  readonly isStopped?: boolean | undefined;
}

/** An endpoint of an upstream. */
export interface EndpointView {
  readonly upstream: string;
  /** Its host and port. */
  readonly endpoint: string;
  /** False while nothing but a trial is sent there. */
  readonly isHealthy: boolean;
}

export interface ClientsView {
  readonly tracked: number;
  readonly byState: Readonly<Record<ClientState, number>>;
  /** Of the allowances of tracked clients; 1 and 1 when there are none. */
  readonly allowance: { readonly min: number; readonly mean: number };
}

/** Read at scrape time; costs nothing between scrapes. Limits of scope client or credential are told in aggregate by metrics. */
export interface GateView {
  readonly limits: readonly LimitView[];
  readonly clients: ClientsView;
  /** Retry budget left as a share of its burst, by upstream. */
  readonly budgets: ReadonlyMap<string, number>;
}
