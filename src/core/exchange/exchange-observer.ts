/**
 * Observers of exchanges: explanations and traces. One observer serves all exchanges. A step of an ordinary request creates no
 * object, and without an observer nothing of this is computed.
 */
import type { LimitCost } from '../cost/request-costs.ts';
import type { FallbackReason } from '../events/event-labels.ts';
import type { RequestRecord } from '../events/request-record.ts';
import type { DecisionDetails } from '../admission/decision-details.ts';
import type { PlannedPoll } from '../polling/choose-poll.ts';
import type { PlannedRetry } from '../retry/choose-retry.ts';
import type { ClaimRefusalReason, KeyRefusalReason } from '../idempotency/key-record.ts';
import type { Millis } from '../scalars.ts';
import type { AttemptOutcome } from './attempt-outcome.ts';
import type { ReplaySafety } from './request-facts.ts';
import type { RefusalReason } from '../admission/gate-decision.ts';
import type { RetryOutcome, RetryPolicy } from '../retry/retry-policy.ts';

/** An exchange, as its observers see it. Descriptions are built on demand. */
export interface ObservedExchange {
  describe(): ExchangeDescription;
  lastAttempt(): LastAttempt;
  /** Its steps that are out of the ordinary, oldest first; created with the first one. */
  steps: TraceStep[] | undefined;
  /** Set by the tracing observer. */
  trace: TraceContext | undefined;
}

/** What is known about a request on its arrival. */
export interface ExchangeDescription {
  readonly id: string;
  readonly method: string;
  /** Without its query: queries carry secrets. */
  readonly path: string;
  readonly route: string;
  /** The path pattern of the route. */
  readonly routePath: string;
  readonly upstream: string;
  /** Hashed identity, and what identified the client: `header:x-api-key`, `ip`. */
  readonly client: string;
  readonly identifiedBy: string;
  readonly scheme: 'http' | 'https';
  /** Of HTTP: `1.1`, `2.0`. */
  readonly version: string;
  /** The trace headers of the client (W3C Trace Context). */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  readonly retryPolicy: RetryPolicy;
  /** The configuration's classification of its path; absent: by method. */
  readonly replaySafety?: ReplaySafety | undefined;
  /** Where its idempotency key is found, never its value unless the proxy minted it; undefined without a key. */
  readonly key?: string | undefined;
}

/** All fields are undefined before the first attempt. */
export interface LastAttempt {
  /** The endpoint, as metrics and logs name it, and as a URL: `api.example.com`, `https://api.example.com`. */
  readonly endpoint: string | undefined;
  readonly origin: string | undefined;
  readonly outcome: AttemptOutcome | undefined;
  /** Why it failed, as the operating system reports it; undefined if it did not. */
  readonly cause: string | undefined;
  /** The account that it was sent with; absent if the upstream has none. */
  readonly account?: string | undefined;
  /** Of a request with several limits: the limit that its rejection is attributed to; empty for none. */
  readonly limit?: string | undefined;
  /** What it costs at limits with a cost; absent without one. Changes when a body has been read for it, after the end of the exchange. */
  readonly costs?: readonly Readonly<LimitCost>[] | undefined;
}

/** The place of a request in a trace. */
export interface TraceContext {
  readonly traceId: string;
  /** Of the server span. */
  readonly spanId: string;
  /** The trace headers of the attempt in progress: names and values in turn, in lower case. */
  readonly outgoing: readonly string[];
}

/** `at` is a reading of the exchange's clock. */
export interface ExchangeObserver<W = ObservedExchange> {
  onStart(observed: W): void;
  onSend(observed: W, attempt: number): void;
  onOutcome(observed: W, attempt: number, outcome: AttemptOutcome, at: Millis): void;
  /** A step that is out of the ordinary. */
  onStep(observed: W, step: TraceStep): void;
  onEnd(observed: W, record: RequestRecord): void;
  /** The request was refused before it became an exchange. */
  onRefused(record: RequestRecord, traceparent: string | undefined): void;
}

/** Steps that most requests do not have; and, once there was one, the outcomes of attempts. */
export type TraceStep =
  /** The request waited for another one with its idempotency key, or the key is too old. `why`: it was refused. */
  | {
      readonly what: 'claimed';
      readonly at: Millis;
      readonly waited: Millis;
      readonly why: KeyRefusalReason | ClaimRefusalReason | undefined;
    }
  /** The request waited for the response to an equal read. `equalId`: of the request whose response it gets; undefined if it is sent itself. */
  | { readonly what: 'joined'; readonly at: Millis; readonly waited: Millis; readonly equalId: string | undefined }
  /** The request did not pass at once; in observe mode: it would not have. */
  | {
      readonly what: 'decided';
      readonly at: Millis;
      readonly decision: 'queued' | 'refused';
      readonly why: RefusalReason | undefined;
      /** Of the refusal. */
      readonly retryAfterMs: Millis | undefined;
      readonly isObserved: boolean;
      readonly details: DecisionDetails;
    }
  /** The request left the queue. `why`: it was refused. */
  | {
      readonly what: 'dequeued';
      readonly at: Millis;
      readonly waited: Millis;
      readonly why: RefusalReason | undefined;
      readonly retryAfterMs: Millis | undefined;
      /** Of a refusal. */
      readonly details: DecisionDetails | undefined;
    }
  | {
      readonly what: 'answered';
      readonly at: Millis;
      readonly attempt: number;
      readonly outcome: AttemptOutcome;
      readonly endpoint: string | undefined;
      readonly cause: string | undefined;
      readonly account?: string | undefined;
      readonly limit?: string | undefined;
    }
  /** A retry was reserved after this attempt, and waits for `retry.delay`. `ordinal`: the number of that attempt in its poll, from 1. */
  | {
      readonly what: 'retry';
      readonly at: Millis;
      readonly retry: PlannedRetry;
      readonly attempt: number;
      readonly ordinal: number;
    }
  /** The result was not ready, or the poll was refused: another poll waits for `poll.delay`. */
  | { readonly what: 'poll'; readonly at: Millis; readonly poll: PlannedPoll; readonly after: 'not_ready' | 'refused' }
  /** The result was not ready, and there is no other poll although the client would wait. */
  | { readonly what: 'unpolled'; readonly at: Millis; readonly why: PollStopReason }
  /** A retry was called for, and was denied. */
  | {
      readonly what: 'denied';
      readonly at: Millis;
      readonly why: RetryOutcome;
      /** Reserved for the attempt before the deadline. */
      readonly attemptTime: Millis;
      /** The client's timeout, if that determines the deadline. */
      readonly clientTimeout?: Millis | undefined;
    }
  | { readonly what: 'waited'; readonly at: Millis; readonly slept: Millis }
  /** The upstream `from` did not process the request: the steps that follow are those at its fallback. */
  | {
      readonly what: 'fallback';
      readonly at: Millis;
      readonly from: string;
      readonly to: string;
      readonly why: FallbackReason;
    }
  /** The client disconnected, or its request could not be read to the end: its record has the cause. */
  | {
      readonly what: 'gone';
      readonly at: Millis;
      readonly during: 'body' | 'claim' | 'join' | 'queue' | 'attempt' | 'wait';
    }
  /** The proxy shuts down before the end of a wait. */
  | { readonly what: 'draining'; readonly at: Millis };

/** Why there was no other poll: the proxy shuts down, too many requests wait (in all or from one address), or the poll could not be sent in time. */
export type PollStopReason = 'draining' | 'too_many_waiting' | 'deadline';

/** One observer that calls all of them, in order. */
export function combineObservers(observers: readonly ExchangeObserver[]): ExchangeObserver {
  return {
    onStart: (observed) => {
      for (const observer of observers) observer.onStart(observed);
    },
    onSend: (observed, attempt) => {
      for (const observer of observers) observer.onSend(observed, attempt);
    },
    onOutcome: (observed, attempt, outcome, at) => {
      for (const observer of observers) observer.onOutcome(observed, attempt, outcome, at);
    },
    onStep: (observed, step) => {
      for (const observer of observers) observer.onStep(observed, step);
    },
    onEnd: (observed, record) => {
      for (const observer of observers) observer.onEnd(observed, record);
    },
    onRefused: (record, traceparent) => {
      for (const observer of observers) observer.onRefused(record, traceparent);
    },
  };
}
