/**
 * Who watches exchanges, step by step: explanations and traces. One watcher serves all exchanges; a step of an ordinary one
 * makes no object, and without a watcher nothing of this is done.
 */
import type { RequestRecord } from '../events/proxy-events.ts';
import type { Grounds } from '../admission/decision-details.ts';
import type { Poll } from '../polling/choose-poll.ts';
import type { Retry } from '../retry/choose-retry.ts';
import type { KeyRefusal, Millis, Outcome, Refusal, RetryEnd, RetryPolicy } from './attempt-outcome.ts';

/** An exchange, as those who watch it see it. What is told of it is put together when it is asked for. */
export interface Watched {
  describe(): Description;
  lastAttempt(): LastAttempt;
  /** What has happened to it out of the ordinary, oldest first; made when there is something. */
  steps: Step[] | undefined;
  /** Of who traces. */
  trace: Trace | undefined;
}

/** What is known of a request when it arrives. */
export interface Description {
  readonly id: string;
  readonly method: string;
  /** As it may be told, without its query. */
  readonly path: string;
  readonly route: string;
  /** The path that leads there. */
  readonly routePath: string;
  readonly upstream: string;
  /** Hashed identity, and what that was told apart by: `header:x-api-key`, `ip`. */
  readonly client: string;
  readonly identifiedBy: string;
  readonly scheme: 'http' | 'https';
  /** Of HTTP: `1.1`, `2.0`. */
  readonly version: string;
  /** What the client said of the trace that it is a part of (W3C Trace Context). */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  readonly retryPolicy: RetryPolicy;
  /** Where its idempotency key stands, and never what it is, unless it was minted here; undefined where it has none. */
  readonly key?: string | undefined;
}

/** All undefined before the first. */
export interface LastAttempt {
  /** Where it goes, as metrics and logs call it, and as a URL: `api.example.com`, `https://api.example.com`. */
  readonly endpoint: string | undefined;
  readonly origin: string | undefined;
  readonly outcome: Outcome | undefined;
  /** Why it failed, in the word of the system; undefined when it did not. */
  readonly cause: string | undefined;
  /** Of a request that stands under several limits: the one that its refusal is held against; empty for none. */
  readonly limit?: string | undefined;
}

/** A request as a part of a trace. */
export interface Trace {
  readonly traceId: string;
  /** What the attempt under way says of it: names and values in turn, in lower case. */
  readonly outgoing: readonly string[];
}

/** `at` is of the clock that the exchange runs by. */
export interface Watcher<W = Watched> {
  began(watched: W): void;
  sending(watched: W, attempt: number): void;
  settled(watched: W, attempt: number, outcome: Outcome, at: Millis): void;
  /** Something that is out of the ordinary. */
  noted(watched: W, step: Step): void;
  over(watched: W, record: RequestRecord): void;
  /** It never became an exchange. */
  refused(record: RequestRecord, traceparent: string | undefined): void;
}

/** What happens to some requests, and to most does not; and, once it has, what an attempt came to. */
export type Step =
  /** It has waited for another request with its idempotency key, or that is too old; `why` it was turned away, where it was. */
  | {
      readonly what: 'claimed';
      readonly at: Millis;
      readonly waited: Millis;
      readonly why: KeyRefusal | 'draining' | undefined;
    }
  /** It did not pass at once. Where we observe: it would not have. */
  | {
      readonly what: 'decided';
      readonly at: Millis;
      readonly decision: 'queued' | 'refused';
      readonly why: Refusal | undefined;
      /** When it was told to come back. */
      readonly retryAfter: Millis | undefined;
      readonly isObserved: boolean;
      readonly grounds: Grounds;
    }
  /** It has waited for its turn; `why` it was turned away, where it was. */
  | {
      readonly what: 'dequeued';
      readonly at: Millis;
      readonly waited: Millis;
      readonly why: Refusal | undefined;
      readonly retryAfter: Millis | undefined;
      /** Of one that was turned away. */
      readonly grounds: Grounds | undefined;
    }
  | {
      readonly what: 'answered';
      readonly at: Millis;
      readonly attempt: number;
      readonly outcome: Outcome;
      readonly endpoint: string | undefined;
      readonly cause: string | undefined;
      readonly limit?: string | undefined;
    }
  /** A retry was reserved after this attempt: it waits for as long as `retry` says. `ordinal`: which one of its poll, from 1. */
  | {
      readonly what: 'retry';
      readonly at: Millis;
      readonly retry: Retry;
      readonly attempt: number;
      readonly ordinal: number;
    }
  /** It was not ready, or was turned away, and is asked for again: it waits for as long as `poll` says. */
  | { readonly what: 'poll'; readonly at: Millis; readonly poll: Poll; readonly after: 'not_ready' | 'refused' }
  /** It was not ready, and is not asked for again although its client would wait. */
  | { readonly what: 'unpolled'; readonly at: Millis; readonly why: Unpolled }
  /** A retry was called for, and was not to be had. */
  | {
      readonly what: 'denied';
      readonly at: Millis;
      readonly why: RetryEnd;
      /** Before the deadline, kept free for an answer to it. */
      readonly attemptTime: Millis;
    }
  | { readonly what: 'waited'; readonly at: Millis; readonly slept: Millis }
  /** The client went away, or the request was given up for what it is: its record says which. */
  | { readonly what: 'gone'; readonly at: Millis; readonly during: 'body' | 'claim' | 'queue' | 'attempt' | 'wait' }
  /** The proxy goes away before a wait would end. */
  | { readonly what: 'draining'; readonly at: Millis };

/** Why there was no other poll: the proxy goes away, as many are waited for as may be, its turn would not have come in time. */
export type Unpolled = 'draining' | 'too_many_waiting' | 'deadline';

/** All of them, in order. */
export function watchTogether(watchers: readonly Watcher[]): Watcher {
  return {
    began: (watched) => {
      for (const each of watchers) each.began(watched);
    },
    sending: (watched, attempt) => {
      for (const each of watchers) each.sending(watched, attempt);
    },
    settled: (watched, attempt, outcome, at) => {
      for (const each of watchers) each.settled(watched, attempt, outcome, at);
    },
    noted: (watched, step) => {
      for (const each of watchers) each.noted(watched, step);
    },
    over: (watched, record) => {
      for (const each of watchers) each.over(watched, record);
    },
    refused: (record, traceparent) => {
      for (const each of watchers) each.refused(record, traceparent);
    },
  };
}
