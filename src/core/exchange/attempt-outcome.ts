/**
 * The vocabulary of the policy: what a request is to it, what an attempt came to, what a client is told.
 * Everything here is data. Nothing in `core/` knows a clock, chance or I/O: `now` and `random` are arguments.
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
  /**
   * Whether it is a refusal for its rate, where the upstream's configuration says so whatever the status: GitHub's 403,
   * Shopify's 200; or a 429 that is none. Absent: a 429 is one, and nothing else is.
   */
  readonly throttled?: boolean;
  /** The answer comes from a cache (its Age is above 0). It says nothing about the rate or health of the upstream now. */
  readonly isCached?: boolean;
  /**
   * Which limit the refusal is about: the name of a nested one, or '' for the upstream's own; of several, the innermost that the
   * request stands under. Absent: the innermost of all.
   */
  readonly limit?: string | readonly string[];
}

export interface Quota {
  /** Requests left in the window, ≥ 0. */
  readonly remaining: number;
  /** As the upstream has it, where what was sent since is taken off `remaining`. */
  readonly told?: number;
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
  /**
   * Of a 429 or a 503 without Retry-After: how long its other fields ask its client to wait, 0 where they say nothing.
   * Absent: the answer has a Retry-After, or needs none.
   */
  readonly impliedWait?: Millis;
  /** The upstream marks it as the stored answer to an earlier request with the same idempotency key. */
  readonly isReplayed?: boolean;
  /** It says itself that nobody knows what came of the write: another Tidegate stands behind this one. */
  readonly isUnknown?: boolean;
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

/** Refused for its rate: nothing was done, and the limit is felt. A lock is no such refusal. */
export function isThrottled(status: number, hints: Hints): boolean {
  return !hints.lock && (hints.throttled ?? status === 429);
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
  | 'key_expired'
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
  /**
   * What a keyed write that has failed at the upstream itself comes to when it is sent again: the same answer, told from
   * memory (true), or the write anew (false). Undefined where that is not known.
   */
  readonly replaysErrors?: boolean | undefined;
  /** Statuses by which the upstream says that it has not processed the request. Absent: `NOT_PROCESSED`. */
  readonly notProcessed?: ReadonlySet<number>;
  /** All endpoints of the upstream know the same idempotency keys. Absent: each knows its own. */
  readonly sharesKeys?: boolean;
  /** The least time before the deadline that is worth an attempt of a write. Absent: any. */
  readonly minAttemptTime?: Millis;
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
  /** How long the upstream remembers a key of such a request; absent where that is not known. */
  readonly keyTtl?: Millis | undefined;
  /** `Expect: 100-continue`: admitted before its body is read. */
  readonly expectsContinue: boolean;
  /** Sends another proxy in front has already made (0 when unknown): its retries are not multiplied. */
  readonly priorAttempts: number;
  /** How long its client would wait for what is not ready yet, ≥ 0 (`Prefer: wait`, RFC 7240). Absent where nothing is polled. */
  readonly wait?: Millis;
  /** What the configuration says of its path: a POST that only reads, or what is never sent twice. Absent: as its method has it. */
  readonly nature?: Nature | undefined;
}

/** `safe`: no effect is asked for, whatever the method. `never`: not to be repeated, whatever its key. */
export type Nature = 'safe' | 'never';

/** RFC 9110 §9.2.1: no effect is asked for, so an unknown outcome harms nobody. */
export function isSafeMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'TRACE' || method === 'QUERY';
}

/** RFC 9110 §9.2.2: twice is as good as once. */
export function isIdempotentMethod(method: string): boolean {
  return isSafeMethod(method) || method === 'PUT' || method === 'DELETE';
}

/** No effect is asked for: by its method, or by what is known of its path. */
export function isSafe({ method, nature }: Pick<RequestFacts, 'method' | 'nature'>): boolean {
  return nature === 'safe' || isSafeMethod(method);
}

/** May be sent again whatever became of an attempt. @param keyed it has an idempotency key, wherever that stands */
export function isRepeatable({ method, nature }: Pick<RequestFacts, 'method' | 'nature'>, keyed: boolean): boolean {
  return nature !== 'never' && (nature === 'safe' || keyed || isIdempotentMethod(method));
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

/** What is known of the write that an idempotency key names, from exchanges before. */
export interface KeyRecord {
  /** When it was first sent. */
  readonly firstSentAt: Millis;
  /** The upstream has answered it, and its client has the answer. Otherwise it is open whether it took effect. */
  readonly isAnswered: boolean;
  /** That answer says for good what came of it, whatever becomes of this request; absent where it does not. */
  readonly isDone?: boolean;
  /** Which endpoint it was sent to, as metrics call it; absent where that does not matter. */
  readonly endpoint?: string | undefined;
}

/** Why a write is not sent because of its idempotency key. */
export type KeyRefusal =
  /** Another request with it is under way. */
  | 'key_in_use'
  /** It was sent longer ago than the upstream remembers keys: sent again it may take effect a second time. */
  | 'key_expired';

/** What the client gets. `attempts` counts sends; `retryEnd` is how the wish to retry ended, where there was one. */
export type Verdict = {
  readonly attempts: number;
  readonly retryEnd: RetryEnd | undefined;
  /** Only where we observe: this outcome would have been retried, for this reason. */
  readonly wouldRetry?: RetryReason | undefined;
  /** How often it was asked for because it was not ready, the first time included. Undefined where it was asked for once. */
  readonly polls?: number | undefined;
  /** What is forwarded says that it is not ready although it was waited for. */
  readonly notReady?: boolean | undefined;
} & (
  | Forward
  /** Our own answer: nothing of this request can have taken effect. */
  | { readonly kind: 'refuse'; readonly why: Refusal | 'key_in_use'; readonly retryAfter: Millis }
  /** The same: a write with its key was answered longer ago than the upstream remembers keys. To ask again is no use. */
  | { readonly kind: 'refuse'; readonly why: 'key_expired'; readonly retryAfter: undefined }
  /** Our own 502 or 504: the upstream could not be reached, or gave no answer to a request that asks for no effect. */
  | { readonly kind: 'fail'; readonly reason: ErrorReason }
  /**
   * Our own 504 (of an expired key, 409): a write may have happened, so it is never told as "not processed".
   * `status`: of the answer that speaks of its own attempt alone, where there was one.
   */
  | { readonly kind: 'unknown'; readonly reason: UnknownReason; readonly status?: number }
  /** Nobody is there to be told. `unknown`: its write may have happened. */
  | { readonly kind: 'gone'; readonly unknown: boolean }
);

/**
 * Why it is not known what came of a write: no attempt was answered; or the last one was turned away, which says nothing of
 * those before it; or its key is too old.
 */
export type UnknownReason = ErrorReason | Refusal | 'throttled' | 'not_processed' | 'rejected' | 'key_expired';

/** The response in hand. `unknown`: it answers a write that may have happened although the answer is an error. */
export interface Forward {
  readonly kind: 'forward';
  readonly unknown: boolean;
  /** When its client may come back, where the response is a 429 or a 503 and has no Retry-After of its own. */
  readonly retryAfter?: Millis;
}
