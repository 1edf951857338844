/**
 * The steps of the generators that describe a life: of a request (exchange.ts), of one that is polled (polling-exchange.ts)
 * and of an ingress check (external-authorization.ts). A generator yields a step and receives its result.
 */
import type { GateDecision, EnforcementMode, RefusalReason } from '../admission/gate-decision.ts';
import type { PlannedPoll, PollPolicy } from '../polling/choose-poll.ts';
import type { OtherAccount, PlannedRetry } from '../retry/choose-retry.ts';
import type { ClaimRefusalReason, KeptResponseMatch, KeyRecord } from '../idempotency/key-record.ts';
import type { Millis } from '../scalars.ts';
import type { AttemptOutcome } from './attempt-outcome.ts';
import type { RetryOutcome, RetryPolicy } from '../retry/retry-policy.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';

export type ExchangeStep =
  /** Read the request's body, as much of it as can be kept for a replay. */
  | { readonly do: 'body' }
  /** Hold the idempotency key until the exchange ends, so that no other request can use it; wait for it if configured. */
  | { readonly do: 'claim'; readonly deadline: Millis }
  /** Wait for the response to an equal read, if there is one that is not sent yet; see `InFlightReads`. */
  | { readonly do: 'join'; readonly deadline: Millis }
  /** Read what is recorded of the write by now. */
  | { readonly do: 'look' }
  /** Ask the gate for a token of every limit of this request. */
  | { readonly do: 'admit'; readonly deadline: Millis; readonly clientTimeout?: Millis | undefined }
  | SendStep
  | ReserveStep
  | PollStep
  | GrantStep
  /** Discard the response in hand, and sleep. */
  | { readonly do: 'wait'; readonly ms: Millis };

/** A check: the ingress sends the request. Count it as sent and forget it. */
export interface GrantStep {
  readonly do: 'grant';
}

export interface SendStep {
  readonly do: 'send';
  /** Counts from 1. */
  readonly attempt: number;
  readonly timeout: Millis;
  /** The first byte of the request must have left by then, to leave time for the response; see `ExchangeState.nextSend`. */
  readonly startBy: Millis;
  /** No byte may leave after this: the upstream no longer remembers the key. Infinity if that does not matter. */
  readonly keyValidUntil: Millis;
  /** Send only to the endpoint that the write was sent to before. */
  readonly isPinned: boolean;
}

/** May this retry begin? Answered at once, while the response is still in hand. */
export interface ReserveStep {
  readonly do: 'reserve';
  readonly retry: PlannedRetry;
  readonly deadline: Millis;
  /** Reserved for the attempt before the request's deadline. */
  readonly attemptTime: Millis;
  /** The client's timeout, if that determines the deadline. */
  readonly clientTimeout: Millis | undefined;
}

/** May this poll begin? Answered at once; after `not_ready`, while the response is still in hand. */
export interface PollStep {
  readonly do: 'poll';
  readonly poll: PlannedPoll;
  readonly after: 'not_ready' | 'refused';
  /** Of the poll. */
  readonly deadline: Millis;
}

/** Results carry the time at which they arrived, because a generator has no clock. */
export type StepResult =
  | BodyReadResult
  | KeyClaimed
  | KeyClaimRefused
  | ReadJoined
  | KeyLookupResult
  | Admitted
  | AdmissionRefused
  | SendResult
  | Granted
  | Reserved
  | ReservationDenied
  | WaitElapsed
  | ClientGone
  | DrainStarted;

export interface BodyReadResult {
  readonly kind: 'body';
  readonly replayable: boolean;
  /** The body contains the request's idempotency key. */
  readonly keyed?: boolean;
  readonly at: Millis;
}
export interface KeyClaimed {
  readonly kind: 'claimed';
  /** What is recorded of the write; absent if nothing is. */
  readonly record?: KeyRecord | undefined;
  /** Another request had the key. */
  readonly hasWaited?: boolean;
  /** Whether a response to the write is kept; absent: `none`. */
  readonly response?: KeptResponseMatch | undefined;
  readonly at: Millis;
}
export interface KeyClaimRefused {
  readonly kind: 'unclaimed';
  readonly why: ClaimRefusalReason;
  /** The write may have taken effect through the request that holds the key. */
  readonly mayHaveTakenEffect: boolean;
  readonly at: Millis;
}
export interface ReadJoined {
  readonly kind: 'joined';
  /** The response to an equal read is that of this request; otherwise it is sent itself. */
  readonly hasResponse: boolean;
  readonly at: Millis;
}
export interface KeyLookupResult {
  readonly kind: 'known';
  /** Absent: nothing is known. */
  readonly record?: KeyRecord | undefined;
  readonly at: Millis;
}
export interface Admitted {
  readonly kind: 'admitted';
  readonly at: Millis;
  /** Observe mode only: what would have been decided. */
  readonly wouldHave?: GateDecision;
}
export interface AdmissionRefused {
  readonly kind: 'refused';
  readonly why: RefusalReason;
  readonly retryAfterMs: Millis;
  readonly at: Millis;
}
export interface SendResult {
  readonly kind: 'sent';
  readonly outcome: AttemptOutcome;
  /** Absent if no other account may serve the request. */
  readonly otherAccount?: OtherAccount | undefined;
  readonly at: Millis;
}
export interface Granted {
  readonly kind: 'granted';
  readonly at: Millis;
}
export interface Reserved {
  readonly kind: 'reserved';
  readonly at: Millis;
}
export interface ReservationDenied {
  readonly kind: 'denied';
  /** Of a poll, always `deadline`: the exchange does not use it. */
  readonly why: RetryOutcome;
  readonly at: Millis;
}
export interface WaitElapsed {
  readonly kind: 'waited';
  readonly at: Millis;
}
/** The client disconnected. */
export interface ClientGone {
  readonly kind: 'gone';
  readonly at: Millis;
}
/** The proxy shuts down before the end of the wait, or during a wait for a poll. */
export interface DrainStarted {
  readonly kind: 'draining';
  readonly at: Millis;
}

export type ExchangeGenerator = Generator<ExchangeStep, ExchangeVerdict, StepResult>;

/** The settings of a route. Immutable: an exchange keeps its policy to the end, even if the configuration is reloaded meanwhile. */
export interface RoutePolicy {
  readonly retry: RetryPolicy;
  /** Until the response head: queueing, attempts and waits together, without the client's upload. */
  readonly timeout: Millis;
  readonly perTryTimeout: Millis;
  /** `enforce` when absent. */
  readonly mode?: EnforcementMode;
  /** Whether a write with an idempotency key claims it before it is sent. */
  readonly claims?: boolean;
  /** Whether equal reads that wait at the same time are sent once. */
  readonly coalesces?: boolean;
  /** Absent: nothing is polled. */
  readonly poll?: PollPolicy | undefined;
}

/** @throws Error if the interpreter answered a step with a result of another kind: its other results cannot be trusted either */
export function expectResult<K extends StepResult['kind']>(
  kind: K,
  result: StepResult,
): Extract<StepResult, { readonly kind: K }> {
  if (!hasKind(kind, result)) throw new Error(`the exchange expected '${kind}' and received '${result.kind}'`);
  return result;
}

function hasKind<K extends StepResult['kind']>(
  kind: K,
  result: StepResult,
): result is Extract<StepResult, { readonly kind: K }> {
  return result.kind === kind;
}
