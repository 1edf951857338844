import type { GateDecision } from '../admission/gate-decision.ts';
import type { RetryOutcome, RetryReason } from '../retry/retry-policy.ts';
import type { Millis } from '../scalars.ts';
import type { RequestOutcome, RetryAfterSource } from './event-labels.ts';

/** The record of one finished request. */
export interface RequestRecord {
  readonly id: string;
  /** When its head had been read, by the clock of the exchange. */
  readonly at: Millis;
  readonly route: string;
  readonly upstream: string;
  readonly method: string;
  /** Path without its query: queries carry secrets. */
  readonly path: string;
  /** Hashed identity of the client. */
  readonly client: string;
  /** Of a client that the configuration names, or that has proven its name. */
  readonly clientName?: string | undefined;
  /** The status sent to the client; 0 if the client disconnected before a response head. */
  readonly status: number;
  readonly outcome: RequestOutcome;
  /** Why it ended so, in one word: a RefusalReason, an ErrorReason or a RetryOutcome; undefined on success. */
  readonly reason: string | undefined;
  readonly attempts: number;
  /** How often a result that was not ready was requested, the first time included; absent if requested once. */
  readonly polls?: number | undefined;
  /** Time spent in queues, and waiting before retries and polls. */
  readonly queueTime: Millis;
  readonly sleepTime: Millis;
  /** From the arrival to the response head, and to the end of the response. */
  readonly timeToHead: Millis;
  readonly took: Millis;
  /** Seconds in Retry-After: the proxy's, or the upstream's on a 429 or a 503; undefined if there is none that can be parsed. */
  readonly retryAfterSeconds: number | undefined;
  /** Absent if there is no Retry-After. */
  readonly retryAfterFrom?: RetryAfterSource | undefined;
  /** The body was cut short after its head had been sent. */
  readonly isTruncated: boolean;
  /** The client disconnected while its write was at the upstream, and the write may have taken effect. */
  readonly isAbandonedWrite?: true | undefined;
  /**
   * Why its last attempt failed or its response was cut, as the system or OpenSSL reports it, or whose certificate was not
   * trusted.
   */
  readonly cause?: string | undefined;
  /** Bytes after a protocol upgrade; absent without one. */
  readonly upgradeBytes?: { readonly toUpstream: number; readonly toClient: number } | undefined;
  /** Observe mode only: what would have been decided. Absent if nothing was decided, and in enforce mode. */
  readonly wouldHave?: GateDecision | undefined;
  /** Observe mode only: why the response would have been retried; undefined if it would not. */
  readonly wouldRetry?: RetryReason | undefined;
  /** The reason as text, if the response is the proxy's own. */
  readonly detail?: string | undefined;
  /** How the retries ended, if one was called for. */
  readonly retryOutcome?: RetryOutcome | undefined;
  /** The idempotency key that the proxy minted; absent if the client sent one, or the request has none. */
  readonly mintedKey?: string | undefined;
  /** The key that was derived from it for the upstream; absent if the upstream got the client's own. */
  readonly upstreamKey?: string | undefined;
  /** The id of the delivery that it is an attempt of; absent for a request of a client. */
  readonly delivery?: string | undefined;
  /** The id of the write that its idempotency key names (write-id.ts); absent if it has claimed no key. */
  readonly write?: string | undefined;
  /** Of the trace that the request belongs to (W3C Trace Context), in hex; absent without a trace. */
  readonly traceId?: string | undefined;
  /** Its span of that trace in Tidegate, if it has one; else the client's. */
  readonly spanId?: string | undefined;
  /** The client's own `X-Request-Id`, which the upstream also gets; absent if it sent none that is usable. */
  readonly xRequestId?: string | undefined;
  /** The upstream of its route, if it did not serve the request and `upstream` is its fallback. */
  readonly fallbackFrom?: string | undefined;
  /** Label of the endpoint of the last attempt; absent before the first. */
  readonly endpoint?: string | undefined;
  /** Bytes of the bodies: read of the request, and written of the response. */
  readonly bytesIn?: number | undefined;
  readonly bytesOut?: number | undefined;
}
