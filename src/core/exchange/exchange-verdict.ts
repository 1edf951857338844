import type { RefusalReason } from '../admission/gate-decision.ts';
import type { ClaimRefusalReason } from '../idempotency/key-record.ts';
import type { RetryOutcome, RetryReason } from '../retry/retry-policy.ts';
import type { Millis } from '../scalars.ts';
import type { ErrorReason } from './attempt-outcome.ts';

/** How an exchange ends for its client. */
export type ExchangeVerdict = {
  /** Sends made. */
  readonly attempts: number;
  /** How the retries ended, if one was called for. */
  readonly retryOutcome: RetryOutcome | undefined;
  /** Observe mode only: the outcome would have been retried for this reason. */
  readonly wouldRetry?: RetryReason | undefined;
  /** How often a result that was not ready was requested, the first time included. Undefined: requested once. */
  readonly polls?: number | undefined;
  /** The forwarded response says that the result is still not ready after polling. */
  readonly notReady?: boolean | undefined;
} & (
  | ForwardVerdict
  /** The proxy's own response: the request cannot have taken effect. */
  | { readonly kind: 'refuse'; readonly why: RefusalReason | RepeatableRefusal; readonly retryAfterMs: Millis }
  /**
   * The same, for a write whose key was answered longer ago than the upstream remembers keys, or for another request, or for an unknown
   * one. Retrying is pointless.
   */
  | { readonly kind: 'refuse'; readonly why: PointlessRefusal; readonly retryAfterMs: undefined }
  /** Send the response that is kept for this write. `unknown`: no client has it yet, so the outcome is unknown if it cannot be sent. */
  | { readonly kind: 'replay'; readonly unknown: boolean }
  /** Send the response to an equal read. */
  | { readonly kind: 'share' }
  /** The proxy's own 502 or 504: the upstream was unreachable, or a request without effect got no response. */
  | { readonly kind: 'fail'; readonly reason: ErrorReason }
  /**
   * The proxy's own 504 (409 for an expired key): a write may have taken effect, so it is never reported as "not processed".
   * `status`: of the response that describes only its own attempt, if there was one.
   */
  | { readonly kind: 'unknown'; readonly reason: UnknownOutcomeReason; readonly status?: number }
  /** The client disconnected. `unknown`: its write may have taken effect. */
  | { readonly kind: 'gone'; readonly unknown: boolean }
);

type PointlessRefusal = 'key_expired' | 'key_reused' | 'key_ambiguous';

type RepeatableRefusal = Exclude<ClaimRefusalReason, PointlessRefusal>;

/**
 * Why the outcome of a write is unknown: no attempt got a response; or the last attempt was rejected, which says nothing
 * about those before it; or its key has expired, or was the key of another request.
 */
export type UnknownOutcomeReason =
  | ErrorReason
  | RefusalReason
  | 'throttled'
  | 'not_processed'
  | 'rejected'
  | 'key_store_lost'
  | 'key_expired'
  | 'key_reused'
  | 'key_ambiguous'
  | 'key_overused';

/** Forward the response in hand. `unknown`: it is an error response to a write that may have taken effect. */
export interface ForwardVerdict {
  readonly kind: 'forward';
  readonly unknown: boolean;
  /** When the client may come back; present if the response is a 429 or a 503 without a Retry-After of its own. */
  readonly retryAfterMs?: Millis;
}
