/**
 * The vocabulary of the policy: what a request is to it, what an attempt came to, what a client is told.
 * Everything here is data. Nothing in `policy/` knows a clock, chance or I/O: `now` and `random` are arguments.
 */

/** Milliseconds: a duration, or a point on a monotonic clock of arbitrary origin. */
export type Millis = number;

/** Uniform on [0, 1). */
export type Random = () => number;

/** A monotonic clock. Interpreters own one; the policy is handed its readings. */
export interface Clock {
  now(): Millis;
}

/** Requests a second; `Infinity` where nothing limits. */
export type PerSecond = number;

/** What an upstream's answer says about pacing, in one normal form. Delays count from the arrival of the head. */
export interface Hints {
  /** "Not before": from Retry-After, retry-after-ms, gRPC pushback. Within [0, 300 000]. */
  readonly retryAfter: Millis | undefined;
  /** What is left of a quota, from RateLimit, X-RateLimit-*, X-Shopify-Shop-Api-Call-Limit. */
  readonly quota: Quota | undefined;
  /** The upstream's own word on retrying: Stripe-Should-Retry, gRPC pushback. */
  readonly verdict: 'retry' | 'never' | undefined;
  /** Why it throttled, in the upstream's word (Stripe-Rate-Limited-Reason), at most 64 characters. */
  readonly reason: string | undefined;
  /** True when the refusal is about one object, not about the rate (Stripe's lock_timeout): never cuts a rate. */
  readonly lock: boolean;
}

export interface Quota {
  /** Requests left in the window, ≥ 0. */
  readonly remaining: number;
  /** Requests in a whole window, where told. */
  readonly limit: number | undefined;
  /** Time until the quota is whole again, where told. */
  readonly resetIn: Millis | undefined;
  /** Length of the window, where told. */
  readonly window: Millis | undefined;
}

export const NO_HINTS: Hints = Object.freeze({
  retryAfter: undefined,
  quota: undefined,
  verdict: undefined,
  reason: undefined,
  lock: false,
});

/** What one attempt came to. */
export type Outcome = ResponseOutcome | ErrorOutcome;

interface ResponseOutcome {
  readonly kind: 'response';
  readonly status: number;
  readonly hints: Hints;
  readonly took: Millis;
  /** A failure of one endpoint while others of the same upstream work: it says nothing of the upstream. */
  readonly othersWork?: boolean;
}

interface ErrorOutcome {
  readonly kind: 'error';
  readonly reason: ErrorReason;
  /** Bytes of the request may have reached the upstream, and it has not said that it left them unread. */
  readonly sent: boolean;
  /** Some of a body that is not kept is gone: even where nothing was sent, it cannot be sent again. */
  readonly bodySpent?: boolean;
  readonly took: Millis;
  /** As of a response. */
  readonly othersWork?: boolean;
  /**
   * Sent on a connection that had served before, and closed without a byte of an answer: most likely it was being closed
   * for its idleness (RFC 9112 §9.3.1), which says nothing of the upstream. All the same it may have been sent.
   */
  readonly stale?: boolean;
}

/**
 * `aborted`: the client went away. `too_many_files`: this process had not what it takes to open a connection. Neither says
 * anything about the upstream.
 */
export type ErrorReason = 'connect' | 'reset' | 'timeout' | 'aborted' | 'too_many_files';

/** A failure for want of something of our own or of our client: no connection of ours was free in time, say. */
export function isOurs({ reason, sent }: ErrorOutcome): boolean {
  return reason === 'aborted' || reason === 'too_many_files' || (reason === 'timeout' && !sent);
}

/** Bad gateway, unavailable, gateway timeout: they speak of the upstream's health, where a 500 is an answer. */
export function isGatewayError(status: number): boolean {
  return status === 502 || status === 503 || status === 504;
}

/** Why a retry is made; the `reason` label of `tidegate_retries_total`. */
export type RetryReason = 'status_5xx' | 'status_429' | 'connect' | 'reset' | 'timeout' | 'lock';

/** How the wish to retry ended; the `outcome` label of `tidegate_retry_outcomes_total`. */
export type RetryEnd =
  | 'success'
  | 'attempts_exhausted'
  | 'budget_exhausted'
  | 'deadline'
  | 'not_idempotent'
  | 'body_too_large'
  | 'retry_after_too_long'
  | 'upstream_veto'
  | 'client_gone';

/** What a route lets the policy do. Compiled from the config; immutable. */
export interface RetryPolicy {
  readonly retryOn: RetryOn;
  /** Sends in all, ≥ 1. */
  readonly attempts: number;
  readonly backOff: BackOff;
  /** Other delays for some reasons. */
  readonly backOffFor: Readonly<Partial<Record<RetryReason, BackOff>>>;
  /** A hint beyond this is passed on to the client at once. */
  readonly maxRetryAfter: Millis;
  /** Writes without an idempotency key: retried never, on 429 only (the upstream rejects before it acts), or always. */
  readonly unkeyedWrites: 'never' | 'on429' | 'always';
  /** Whether a keyed write whose client has gone is finished, so that the key's result exists when the client asks again. */
  readonly onClientGone: 'cancel' | 'finish';
}

export interface RetryOn {
  /** Statuses worth another attempt. 429 is among them only when listed. */
  readonly statuses: ReadonlySet<number>;
  readonly connectFailure: boolean;
  readonly reset: boolean;
  readonly timeout: boolean;
  /** An object lock, or a key already in progress. */
  readonly lock: boolean;
}

/** One retry delay after another. Pure: chance and memory are arguments. */
export interface BackOff {
  readonly name: string;
  /**
   * The delay before retry `n` (from 0). `memory` is what the step before returned, 0 at first.
   * @returns undefined when the strategy gives up.
   */
  next(n: number, memory: number, random: Random): BackOffStep | undefined;
}

export interface BackOffStep {
  /** Finite, ≥ 0. */
  readonly delay: Millis;
  readonly memory: number;
}

/** What the policy has to know of a request. */
export interface RequestFacts {
  readonly method: string;
  /** Carries an idempotency key the upstream honours. */
  readonly keyed: boolean;
  /** `Expect: 100-continue`: admitted before its body is read. */
  readonly expectsContinue: boolean;
  /** Sends another proxy in front has already made (0 when unknown): its retries are not multiplied. */
  readonly priorAttempts: number;
}

/** RFC 9110 §9.2.1: no effect is asked for, so an unknown outcome harms nobody. */
export function isSafeMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'TRACE' || method === 'QUERY';
}

/** RFC 9110 §9.2.2: twice is as good as once. */
export function isIdempotentMethod(method: string): boolean {
  return isSafeMethod(method) || method === 'PUT' || method === 'DELETE';
}

/**
 * `enforce`: what is decided is done. `observe`: every request is forwarded once, at once; what would have been done is
 * only told.
 */
export type Mode = 'enforce' | 'observe';

/** Why the gate would not let a request pass. */
export type Refusal =
  /** The client asks for more than its share of a limited rate. */
  | 'over_share'
  /** The upstream asked this client to wait. */
  | 'held'
  /** The upstream lets nothing through. */
  | 'blocked'
  /** Waited in the queue and its deadline came first. */
  | 'queue_timeout'
  /** The queue is at its bound. */
  | 'queue_full'
  /** The proxy is going away. */
  | 'draining';

/** What the client gets. `attempts` counts sends; `retryEnd` is how the wish to retry ended, where there was one. */
export type Verdict = {
  readonly attempts: number;
  readonly retryEnd: RetryEnd | undefined;
  /** Only where we observe: this outcome would have been retried, for this reason. */
  readonly wouldRetry?: RetryReason | undefined;
} & (
  | Forward
  /** Our own answer: nothing of this request can have taken effect. */
  | { readonly kind: 'refuse'; readonly why: Refusal; readonly retryAfter: Millis }
  /** Our own 502 or 504: the upstream could not be reached, or gave no answer to a request that asks for no effect. */
  | { readonly kind: 'fail'; readonly reason: ErrorReason }
  /** Our own 504: a write may have happened, so it is never told as "not processed". */
  | { readonly kind: 'unknown'; readonly reason: ErrorReason | Refusal | 'throttled' }
  /** Nobody is there to be told. */
  | { readonly kind: 'gone' }
);

/** The response in hand. `unknown`: it answers a write that may have happened although the answer is an error. */
export interface Forward {
  readonly kind: 'forward';
  readonly unknown: boolean;
}
