/**
 * Every event of the proxy, as one union. The gate and the exchange emit them; metrics, logs, explanations and traces
 * consume them. Routes and upstreams have their configured names; a client has its hashed identity, never its key.
 */
import type { AccountResult } from '../accounts/record-account-outcome.ts';
import type { GateDecision } from '../admission/gate-decision.ts';
import type { ErrorReason } from '../exchange/attempt-outcome.ts';
import type { CutCause, LimitScope, LimitState } from '../limits/limit-state.ts';
import type { OverloadCause } from '../overload/load-shedding.ts';
import type { BlockCause } from '../rate/breaker/active-block.ts';
import type { BlockedPart } from '../rate/breaker/request-attributes.ts';
import type { RetryOutcome, RetryReason } from '../retry/retry-policy.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { CertificateEvent } from './certificate-events.ts';
import type { CostEvent } from './cost-events.ts';
import type {
  AuthRejection,
  ClientState,
  DeliveryEvent,
  EjectionCause,
  FallbackReason,
  IdempotencyKeyEvent,
  PollOutcome,
  ReaderAbortReason,
  ReturnCause,
  SignatureLabel,
} from './event-labels.ts';
import type { OperatorAuditEvent, OperatorEvent } from './operator-events.ts';
import type { RequestRecord } from './request-record.ts';
import type { StoreEvent } from './store-events.ts';
import type { UpstreamHealthEvent } from './upstream-health-events.ts';

export type EventSink = (event: ProxyEvent) => void;

/** A delivery that is over: `status` and `reason` are those of its last attempt. */
export interface EndedDelivery {
  readonly id: string;
  readonly upstream: string;
  readonly attempts: number;
  readonly status: number | undefined;
  readonly reason: string | undefined;
}

export type ProxyEvent =
  /** A request arrived and was routed. Its `done` always follows. */
  | { readonly type: 'arrived'; readonly route: string }
  /** A request upgraded its connection to another protocol, until its `done`. */
  | { readonly type: 'upgraded'; readonly route: string }
  /** On an arrival, or on a retry that asks for admission again. In observe mode: what would have been decided. */
  | ({ readonly type: 'decision'; readonly upstream: string } & GateDecision)
  /** A queued request left the queue, admitted or not, after `waited`. */
  | { readonly type: 'dequeued'; readonly upstream: string; readonly waited: Millis; readonly admitted: boolean }
  /**
   * The response head of one attempt, or its failure. `code` is the status, or the reason of the error; `cause` is the code of
   * the error, if it has one. `attempt` counts from 1. `request` is the id of the request, if it has one.
   */
  | {
      readonly type: 'attempt';
      readonly upstream: string;
      readonly attempt: number;
      readonly code: number | ErrorReason;
      readonly cause?: string | undefined;
      readonly took: Millis;
      readonly request?: string | undefined;
    }
  /** The outcome of a request that was checked here and sent by an ingress, as the ingress reports it. */
  | { readonly type: 'reported'; readonly upstream: string; readonly status: number }
  /** The upstream sent a 429, or a response that its preset calls throttled. `reason`: as stated, or `unspecified`. */
  | { readonly type: 'throttled'; readonly upstream: string; readonly reason: string; readonly status: number }
  /** A retry was reserved: it waits for `delay`, which the back-off or the upstream's hint sets. */
  | {
      readonly type: 'retry';
      readonly upstream: string;
      readonly reason: RetryReason;
      readonly delay: Millis;
      readonly source: 'backoff' | 'hint';
    }
  /** The outcome of a poll that the proxy made for a waiting client: the second and later of a request. */
  | { readonly type: 'poll'; readonly route: string; readonly outcome: PollOutcome }
  /** The proxy starts to poll for a client (`waited` undefined), or has stopped, `waited` after the client's arrival. */
  | { readonly type: 'poll-wait'; readonly route: string; readonly waited: Millis | undefined }
  /** A client that polls too often got a response that says when to come back. */
  | { readonly type: 'poll-slowed'; readonly route: string }
  /** A delivery was accepted, or its event was accepted before; or it is over, `age` after it was accepted. */
  | {
      readonly type: 'delivery';
      readonly route: string;
      readonly event: DeliveryEvent;
      readonly age?: Millis;
      /** What is known of a delivery that is over. */
      readonly ended?: EndedDelivery;
    }
  /** An attempt of a delivery has ended. `reason`: why it is not acknowledged, `postponed` if it was not sent, or `acknowledged`. */
  | { readonly type: 'delivery-attempt'; readonly route: string; readonly reason: string; readonly took: Millis }
  /** The signature of a request was verified, or refused (`verify`). */
  | { readonly type: 'signature'; readonly route: string; readonly result: SignatureLabel }
  /** A request was rejected because its client is not known, or may not do what it asks for (`clients.auth`). */
  | { readonly type: 'auth-rejected'; readonly why: AuthRejection }
  /** What clients are verified by was read again, or cannot be: `problem` says why, and what was read before stays in use. */
  | { readonly type: 'auth-source'; readonly setting: string; readonly problem: string | undefined }
  /** A request has an API key that expires soon; at most once for each key. `expiresAt`: ISO 8601. */
  | { readonly type: 'api-key-expires'; readonly keyId: string; readonly client: string; readonly expiresAt: string }
  /** A write without a key was being sent when its process ended: its outcome is unknown. */
  | { readonly type: 'write-interrupted'; readonly route: string }
  /** An idempotency key was minted, or was not free at once: the request waited for it, or the key is in use or expired. */
  | { readonly type: 'key'; readonly upstream: string; readonly event: IdempotencyKeyEvent }
  /** A response was aborted because its client does not read it. */
  | { readonly type: 'reader-cut'; readonly upstream: string; readonly why: ReaderAbortReason }
  /** The retries of a request ended; at most once a request. */
  | { readonly type: 'retry-end'; readonly upstream: string; readonly outcome: RetryOutcome }
  /** A limit's rate was cut. */
  | {
      readonly type: 'cut';
      readonly upstream: string;
      /** The name of a nested limit; absent for the upstream's own. */
      readonly limit?: string;
      readonly scope: LimitScope;
      readonly cause: CutCause;
      readonly from: PerSecond;
      readonly to: PerSecond;
    }
  | {
      readonly type: 'limit-state';
      readonly upstream: string;
      readonly limit?: string;
      readonly scope: LimitScope;
      readonly from: LimitState;
      readonly to: LimitState;
      /** The rate from now on; Infinity if it is unlimited. */
      readonly rate: PerSecond;
      /** What is blocked from now on, and why; absent if nothing is. */
      readonly blocked?: BlockedPart;
      readonly blockedCause?: BlockCause;
      /** What was blocked, if nothing is any more; `from` and `to` may then be equal, as when a partial block begins. */
      readonly unblocked?: BlockedPart;
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
  /** An endpoint gets no requests for `time`; undefined: until its health checks succeed. */
  | {
      readonly type: 'endpoint-ejected';
      readonly upstream: string;
      readonly endpoint: string;
      readonly cause: EjectionCause;
      readonly time: Millis | undefined;
      /** Of the last failed check: its status, or the code of the error; absent for other causes. */
      readonly code?: string | undefined;
    }
  /** The upstream did not process a request, which is sent to its fallback, `to`. */
  | { readonly type: 'fallback'; readonly upstream: string; readonly to: string; readonly why: FallbackReason }
  /** A health check of an endpoint ended. */
  | {
      readonly type: 'endpoint-check';
      readonly upstream: string;
      readonly endpoint: string;
      readonly passed: boolean;
    }
  /** The endpoint gets requests again. */
  | {
      readonly type: 'endpoint-returned';
      readonly upstream: string;
      readonly endpoint: string;
      readonly cause: ReturnCause;
    }
  /** What the outcome of an attempt says about the account that it was sent with. */
  | {
      readonly type: 'account-result';
      readonly upstream: string;
      readonly account: string;
      readonly result: AccountResult;
    }
  /**
   * The upstream rejects the credential of an account, with this status, last for this client: clients with rejections get no requests
   * through for `time`, then a probe.
   */
  | {
      readonly type: 'account-quarantined';
      readonly upstream: string;
      readonly account: string;
      readonly status: number;
      readonly client: string;
      readonly time: Millis;
    }
  /** The upstream accepts the credential again, `after` the start of the quarantine. */
  | { readonly type: 'account-returned'; readonly upstream: string; readonly account: string; readonly after: Millis }
  /** An endpoint sent what makes this side close an HTTP/2 connection: its requests share none for a time. */
  | {
      readonly type: 'http2-violated';
      readonly upstream: string;
      readonly endpoint: string;
      readonly cause: string;
    }
  /** A client's state was evicted to make room. */
  | { readonly type: 'client-evicted'; readonly cause: 'calm' | 'troubled' }
  /** This process cannot keep up and sheds requests; or the overload is over, and `shed` requests were refused. Once an episode. */
  | {
      readonly type: 'overload';
      readonly began: boolean;
      readonly cause: OverloadCause;
      readonly delay: Millis;
      readonly heapUsed: number;
      readonly shed: number;
    }
  /** The configuration was reloaded: it is in effect, or `problem` says, in lines, why the previous one stays in effect. */
  | {
      readonly type: 'reload';
      readonly ok: boolean;
      readonly problem?: string | undefined;
      /** Paths of settings, such as `upstreams.payments.timeout`; never their values. */
      readonly changed?: readonly string[];
      /** Those of them that change what identifies a write. */
      readonly identifyingWrites?: readonly string[];
    }
  | { readonly type: 'done'; readonly record: RequestRecord }
  | OperatorEvent
  | OperatorAuditEvent
  | StoreEvent
  | CertificateEvent
  | UpstreamHealthEvent
  | CostEvent;
