import type { BackOff } from '../backoff/back-off.ts';
import type { Millis } from '../scalars.ts';

/**
 * Why a retry is made; the `reason` label of `tidegate_retries_total`. The configuration spells some of them differently
 * (`5xx`, `connect-failure`): `config/compile/compile-policy.ts` is the one place that maps its conditions to these.
 */
export type RetryReason = 'status_5xx' | 'status_429' | 'connect' | 'reset' | 'timeout' | 'lock' | 'account';

/** How the retries of a request ended; the `outcome` label of `tidegate_retry_outcomes_total`. */
export type RetryOutcome =
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

/** The retry settings of a route. Compiled from the configuration; immutable. */
export interface RetryPolicy {
  readonly retryOn: RetryOn;
  /** Attempts in all, the first included, ≥ 1. */
  readonly attempts: number;
  readonly backOff: BackOff;
  /** Replaces `backOff` for some reasons. */
  readonly backOffFor: Readonly<Partial<Record<RetryReason, BackOff>>>;
  /** A response whose hint is longer than this is forwarded at once. */
  readonly maxRetryAfter: Millis;
  /** Writes without an idempotency key: retried never, on 429 only (the upstream rejects before it acts), or always. */
  readonly unkeyedWrites: 'never' | 'on429' | 'always';
  /** Whether a keyed write is finished after its client disconnected, so that the result exists when the client repeats it. */
  readonly onClientGone: 'cancel' | 'finish';
  /**
   * Whether the upstream replays the stored error of a failed write when its key is sent again (true), or executes the write
   * again (false). Undefined: not known.
   */
  readonly replaysErrors?: boolean | undefined;
  /** Statuses that mean that the upstream has not processed the request. Absent: `NOT_PROCESSED`. */
  readonly notProcessed?: ReadonlySet<number>;
  /** All endpoints of the upstream know the same idempotency keys. Absent: each endpoint knows only its own. */
  readonly sharesKeys?: boolean;
  /** Several requests of one write may be sent at a time. Absent: one after the other. */
  readonly concurrentWrites?: boolean;
  /** The shortest time before the deadline in which a write is still attempted. Absent: any. */
  readonly minAttemptTime?: Millis;
}

/** The outcomes that are worth another attempt, named as `RetryReason` names them. */
export interface RetryOn {
  /** A 429 is retried only if it is listed. */
  readonly statuses: ReadonlySet<number>;
  readonly connect: boolean;
  readonly reset: boolean;
  readonly timeout: boolean;
  /** A locked object, or an idempotency key that is already in progress. */
  readonly lock: boolean;
}
