/**
 * The words of scripts, which tell lives: that of a request (exchange.ts), of one that is polled for (polling-exchange.ts), of a check
 * (external-authorization.ts). A script asks for things with `yield`, and is told what came of them.
 */
import type { Decision } from '../events/proxy-events.ts';
import type { Poll, PollPolicy } from '../polling/choose-poll.ts';
import type { Retry } from '../retry/choose-retry.ts';
import type { KeyRecord, Millis, Mode, Outcome, Refusal, RetryEnd, RetryPolicy, Verdict } from './attempt-outcome.ts';

export type Step =
  /** Read the request's body, as far as it can be kept for a replay. */
  | { readonly do: 'body' }
  /** Have the idempotency key for this request alone, until it ends: wait for who has it, if that is what is wanted. */
  | { readonly do: 'claim'; readonly deadline: Millis }
  /** What is known by now of others' part in its write? Answered at once. */
  | { readonly do: 'look' }
  /** Ask the gate for a token of every limit this request stands under. */
  | { readonly do: 'admit'; readonly deadline: Millis }
  | SendStep
  /** May this retry be begun? Answered at once, while the response is still in hand. `attemptTime`: kept free for its answer. */
  | { readonly do: 'reserve'; readonly retry: Retry; readonly deadline: Millis; readonly attemptTime: Millis }
  /** May it be asked for again? Answered at once; after `not_ready`, while the response is still in hand. */
  | {
      readonly do: 'poll';
      readonly poll: Poll;
      readonly after: 'not_ready' | 'refused';
      /** Of that poll. */
      readonly deadline: Millis;
    }
  /** Whoever asked sends it: count it as sent, and forget it. */
  | { readonly do: 'grant' }
  /** Let go of what is in hand, and sleep. */
  | { readonly do: 'wait'; readonly ms: Millis };

export interface SendStep {
  readonly do: 'send';
  /** Counts from 1. */
  readonly attempt: number;
  readonly timeout: Millis;
  /** Nothing of it may leave after this. Infinity where that does not matter. */
  readonly startBy: Millis;
  /** To no endpoint but the one that its write was sent to before. */
  readonly isPinned: boolean;
}

/** Answers carry the time at which they came: the script has no clock. */
export type Answer =
  | BodyRead
  | Claimed
  | Unclaimed
  | Known
  | Admitted
  | Refused
  | Sent
  | Granted
  | Reserved
  | Denied
  | Waited
  | Gone
  | Draining;

export interface BodyRead {
  readonly kind: 'body';
  readonly replayable: boolean;
  /** The idempotency key of the request stands in it. */
  readonly keyed?: boolean;
  readonly at: Millis;
}
export interface Claimed {
  readonly kind: 'claimed';
  /** What is remembered of its write; absent where nothing is. */
  readonly record?: KeyRecord | undefined;
  readonly at: Millis;
}
export interface Unclaimed {
  readonly kind: 'unclaimed';
  readonly why: 'key_in_use' | 'draining';
  /** The request that has the key may have its write done. */
  readonly mayBeDone: boolean;
  readonly at: Millis;
}
export interface Known {
  readonly kind: 'known';
  /** Absent: nothing is. */
  readonly record?: KeyRecord | undefined;
  readonly at: Millis;
}
export interface Admitted {
  readonly kind: 'admitted';
  readonly at: Millis;
  /** Only where we observe: what would have been decided. */
  readonly wouldHave?: Decision;
}
export interface Refused {
  readonly kind: 'refused';
  readonly why: Refusal;
  readonly retryAfter: Millis;
  readonly at: Millis;
}
export interface Sent {
  readonly kind: 'sent';
  readonly outcome: Outcome;
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
export interface Denied {
  readonly kind: 'denied';
  /** Of a retry: how the wish for it ended. Of a poll, the script does not ask. */
  readonly why: RetryEnd;
  readonly at: Millis;
}
export interface Waited {
  readonly kind: 'waited';
  readonly at: Millis;
}
/** The client went away. */
export interface Gone {
  readonly kind: 'gone';
  readonly at: Millis;
}
/** The proxy goes away before this wait would end; or goes away, and this is the wait for a poll. */
export interface Draining {
  readonly kind: 'draining';
  readonly at: Millis;
}

export type Script = Generator<Step, Verdict, Answer>;

/** What the config says of a route. Immutable: an exchange keeps its plan to the end, whatever is reloaded meanwhile. */
export interface Plan {
  readonly retry: RetryPolicy;
  /** Until the response head: queueing, attempts and waits together; not the client's upload. */
  readonly timeout: Millis;
  readonly perTryTimeout: Millis;
  /** `enforce` when absent. */
  readonly mode?: Mode;
  /** Whether a write with an idempotency key claims it before it is sent. */
  readonly claims?: boolean;
  /** Absent: nothing is polled. */
  readonly poll?: PollPolicy | undefined;
}

/** An interpreter that answers a step with what does not fit it is at fault, and must not be believed. */
export function expect<K extends Answer['kind']>(kind: K, answer: Answer): Extract<Answer, { readonly kind: K }> {
  if (!isKind(kind, answer)) throw new Error(`the script expected '${kind}' and was told '${answer.kind}'`);
  return answer;
}

function isKind<K extends Answer['kind']>(kind: K, answer: Answer): answer is Extract<Answer, { readonly kind: K }> {
  return answer.kind === kind;
}
