import type { Hints } from '../hints/hints.ts';
import type { Millis } from '../scalars.ts';

/** The result of one attempt: a response head, or an error. */
export type AttemptOutcome = ResponseOutcome | ErrorOutcome;

interface ResponseOutcome {
  readonly kind: 'response';
  readonly status: number;
  readonly hints: Hints;
  readonly took: Millis;
  /** One endpoint failed while others of the same upstream work, so the failure says nothing about the upstream. */
  readonly otherEndpointsWork?: boolean;
  /**
   * The endpoint asked for a wait that is its own: it is ejected until then, and another endpoint takes over at once. So the
   * response says nothing about the limit of the upstream.
   */
  readonly isTakenOver?: boolean;
  /**
   * For a 429 or a 503 without Retry-After, or with one that ends too early: the wait that all its fields ask for, not bounded
   * to five minutes, 0 if they ask for none. Absent: the response has its Retry-After, or needs none.
   */
  readonly impliedWait?: Millis;
  /** The upstream marks the response as the stored response to an earlier request with the same idempotency key. */
  readonly isReplayed?: boolean;
  /** The response itself reports an unknown outcome: the upstream is another Tidegate. */
  readonly isUnknown?: boolean;
}

export interface ErrorOutcome {
  readonly kind: 'error';
  readonly reason: ErrorReason;
  /** Bytes of the request may have reached the upstream, and the upstream has not said that it left them unread. */
  readonly sent: boolean;
  /** Part of a body that is not kept for replay was consumed: the request cannot be sent again even if nothing was sent. */
  readonly bodyConsumed?: boolean;
  readonly took: Millis;
  /** As in a response. */
  readonly otherEndpointsWork?: boolean;
  /** Nothing was sent, because the key had to be looked up again first: see `KeyClaim.isCurrent`. */
  readonly isKeyOutdated?: boolean;
  /**
   * Sent on a reused connection that closed before the first byte of a response: most likely the upstream was closing it as
   * idle (RFC 9112 §9.3.1), which says nothing about its health. The request may have been sent nevertheless.
   */
  readonly isStaleConnection?: boolean;
  /**
   * For `connect`: the endpoint has a connection that works. It refused this request on one, or refused to open another. So other
   * requests may succeed.
   */
  readonly isEndpointConnected?: boolean;
  /** For `aborted`: the client disconnects at this age of its requests whenever they are not answered. See `ClientTimeouts`. */
  readonly isClientTimeout?: boolean;
  /** The code of the error, such as `CERT_HAS_EXPIRED`; absent if it has none. */
  readonly cause?: string | undefined;
}

/**
 * `aborted`: the client disconnected. `too_many_files`: this process could not open a connection. Neither says anything
 * about the upstream.
 */
export type ErrorReason = 'connect' | 'reset' | 'timeout' | 'aborted' | 'too_many_files';

/** True if the failure was caused by this process or by the client: for example, no connection of the pool became free in time. */
export function isLocalFailure({ reason, sent }: ErrorOutcome): boolean {
  return reason === 'aborted' || reason === 'too_many_files' || (reason === 'timeout' && !sent);
}

/** True if the upstream rejected the request for its rate, so it did nothing. A rejection about one locked object is not throttling. */
export function isThrottled(status: number, hints: Hints): boolean {
  return !hints.lock && (hints.throttled ?? status === 429);
}

/** Bad gateway, unavailable, gateway timeout: signs of the upstream's health, whereas a 500 concerns one operation. */
export function isGatewayError(status: number): boolean {
  return status === 502 || status === 503 || status === 504;
}
