/**
 * The life of a request, as one pure script. Two interpreters run it: the proxy over sockets, the simulator in virtual
 * time. It asks for things with `yield` and is told what came of them; what is limited and counted, the gate decides.
 *
 *     body ─► admit ─► send ─► settled? ──yes──► forward
 *              ▲  │              │ no
 *         wait │  └─► refuse     ▼
 *              └──────────── reserve ──no──► forward what is in hand, or say plainly what is known
 *
 * With `Expect: 100-continue` the body is read after admission, so that a refusal costs no upload. In observe mode
 * everything is admitted, and a retry that could be reserved is told instead of made.
 */
import type { Retry } from './policy/retry.ts';
import { chooseRetry, mayHaveHappened } from './policy/retry.ts';
import type { Decision } from './policy/events.ts';
import type {
  Millis,
  Mode,
  Outcome,
  Random,
  Refusal,
  RequestFacts,
  RetryEnd,
  RetryPolicy,
  Verdict,
} from './policy/types.ts';

export type Step =
  /** Read the request's body, as far as it can be kept for a replay. */
  | { readonly do: 'body' }
  /** Ask the gate for a token of every limit this request stands under. */
  | { readonly do: 'admit'; readonly deadline: Millis }
  | { readonly do: 'send'; readonly attempt: number; readonly timeout: Millis }
  /** May this retry be begun? Answered at once, while the response is still in hand. */
  | { readonly do: 'reserve'; readonly retry: Retry; readonly deadline: Millis }
  /** Let go of what is in hand, and sleep. */
  | { readonly do: 'wait'; readonly ms: Millis };

/** Answers carry the time at which they came: the script has no clock. */
export type Answer = BodyRead | Admitted | Refused | Sent | Reserved | Denied | Waited | Gone | Draining;

export interface BodyRead {
  readonly kind: 'body';
  readonly replayable: boolean;
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
export interface Reserved {
  readonly kind: 'reserved';
  readonly at: Millis;
}
export interface Denied {
  readonly kind: 'denied';
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
/** The proxy goes away before this wait would end. */
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
}

/** @param arrived when the request's head had been read */
export function* exchange(request: RequestFacts, plan: Plan, random: Random, arrived: Millis): Script {
  let attempts = 0;
  let memory = 0;
  /** An attempt of this write may have taken effect: from here on nothing is told as if it had not. */
  let mayBeDone = false;
  let retryEnd: RetryEnd | undefined;
  /** A retry has been begun. */
  let retrying = false;

  let body: BodyRead | undefined;
  let deadline = arrived + plan.timeout;
  if (!request.expectsContinue) {
    const read = yield { do: 'body' };
    if (read.kind === 'gone') return gone();
    body = expect('body', read);
    deadline = read.at + plan.timeout;
  }

  for (;;) {
    const admission = yield { do: 'admit', deadline };
    if (admission.kind === 'gone') return gone();
    if (admission.kind === 'refused') return refused(admission);

    const { at: admittedAt, wouldHave } = expect('admitted', admission);
    let sendAt = admittedAt;
    if (body === undefined) {
      const read = yield { do: 'body' };
      if (read.kind === 'gone') return gone();
      body = expect('body', read);
      deadline += read.at - admission.at; // the deadline pauses while the client uploads
      sendAt = read.at;
    }

    attempts += 1;
    const timeout = Math.max(1, Math.min(plan.perTryTimeout, deadline - sendAt));
    const { outcome } = expect('sent', yield { do: 'send', attempt: attempts, timeout });
    if (outcome.kind === 'error' && outcome.reason === 'aborted') return gone();

    if (wouldHave?.decision === 'refused') return settle(outcome); // no answer would have come to be retried

    const soFar = { attempts, replayable: body.replayable, mayBeDone, memory };
    const choice = chooseRetry(request, plan.retry, outcome, soFar, random);
    if (choice.kind === 'settled') {
      if (retrying && isAnswer(outcome)) retryEnd = 'success';
      return settle(outcome);
    }
    if (choice.kind === 'stop') {
      retryEnd = choice.why;
      return settle(outcome);
    }

    const { retry } = choice;
    const reservation = yield { do: 'reserve', retry, deadline };
    if (reservation.kind === 'denied') {
      retryEnd = reservation.why;
      return settle(outcome);
    }
    expect('reserved', reservation);
    if (plan.mode === 'observe') return { ...settle(outcome), wouldRetry: retry.reason };
    retrying = true;
    memory = retry.memory;
    mayBeDone ||= mayHaveHappened(request, outcome);

    const wait = yield { do: 'wait', ms: retry.delay };
    if (wait.kind === 'gone') return gone();
    if (wait.kind === 'draining') return refused({ why: 'draining', retryAfter: 1000 });
    expect('waited', wait);
  }

  /** The last word on an outcome that is not retried. */
  function settle(outcome: Outcome): Verdict {
    const unknown = mayBeDone || mayHaveHappened(request, outcome);
    if (outcome.kind === 'error') {
      return { kind: unknown ? 'unknown' : 'fail', reason: outcome.reason, attempts, retryEnd };
    }
    // These say "not processed", and speak of their own attempt only; 409 says that the one before is at work.
    const { status } = outcome;
    if (mayBeDone && (TURNED_AWAY.has(status) || (status === 409 && request.keyed))) {
      return { kind: 'unknown', reason: 'throttled', attempts, retryEnd };
    }
    return { kind: 'forward', unknown: unknown && status >= 500, attempts, retryEnd };
  }

  function refused({ why, retryAfter }: Pick<Refused, 'why' | 'retryAfter'>): Verdict {
    if (retrying) retryEnd = 'deadline';
    if (mayBeDone) return { kind: 'unknown', reason: why, attempts, retryEnd };
    return { kind: 'refuse', why, retryAfter, attempts, retryEnd };
  }

  function gone(): Verdict {
    return { kind: 'gone', attempts, retryEnd: retrying ? 'client_gone' : undefined };
  }
}

/** Request timeout, too early, too many requests, unavailable. */
const TURNED_AWAY: ReadonlySet<number> = new Set([408, 425, 429, 503]);

/** The upstream's considered word, good or bad; a failure that nobody wished to retry is none. */
function isAnswer(outcome: Outcome): boolean {
  return outcome.kind === 'response' && !TURNED_AWAY.has(outcome.status) && outcome.status < 500;
}

/** An interpreter that answers a step with what does not fit it is at fault, and must not be believed. */
function expect<K extends Answer['kind']>(kind: K, answer: Answer): Extract<Answer, { readonly kind: K }> {
  if (!isKind(kind, answer)) throw new Error(`the exchange expected '${kind}' and was told '${answer.kind}'`);
  return answer;
}

function isKind<K extends Answer['kind']>(kind: K, answer: Answer): answer is Extract<Answer, { readonly kind: K }> {
  return answer.kind === kind;
}
