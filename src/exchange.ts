/**
 * The life of a request, as one pure script. Two interpreters run it: the proxy over sockets, the simulator in virtual
 * time. It asks for things with `yield` and is told what came of them; what is limited and counted, the gate decides.
 *
 *     body ─► claim ─► admit ─► send ─► settled? ──yes──► forward
 *                │      ▲  │              │ no
 *                │ wait │  └─► refuse     ▼
 *                ▼      └──────────── reserve ──no──► forward what is in hand, or say plainly what is known
 *              refuse
 *
 * Only a write with an idempotency key has anything to claim: the key, which one request at a time goes with. With
 * `Expect: 100-continue` the body is read after admission, so that a refusal costs no upload. In observe mode everything is
 * admitted, nothing is claimed, and a retry that could be reserved is told instead of made.
 */
import { chooseRetry, mayHaveHappened, restsOnKey } from './policy/retry.ts';
import type { Millis, Outcome, Random, RequestFacts, RetryEnd, Verdict } from './policy/types.ts';
import { isSafe, isThrottled } from './policy/types.ts';
import type { BodyRead, Plan, Refused, Script, Unclaimed } from './script.ts';
import { expect } from './script.ts';

/** @param arrived when the request's head had been read */
export function* exchange(arriving: RequestFacts, plan: Plan, random: Random, arrived: Millis): Script {
  let request = arriving;
  let attempts = 0;
  let memory = 0;
  /** This write may have taken effect, here or in an exchange before: from here on nothing is told as if it had not. */
  let mayBeDone = false;
  let retryEnd: RetryEnd | undefined;
  /** A retry has been begun. */
  let retrying = false;
  /** When its key was first sent, in this exchange or in one before. */
  let keySentAt: Millis | undefined;

  let body: BodyRead | undefined;
  let deadline = arrived + plan.timeout;
  if (!request.expectsContinue) {
    const read = yield { do: 'body' };
    if (read.kind === 'gone') return gone();
    body = expect('body', read);
    deadline = read.at + plan.timeout;
    if (body.keyed === true) request = { ...request, keyed: true };
  }

  if (plan.claims === true && request.keyed && !isSafe(request)) {
    const claim = yield { do: 'claim', deadline };
    if (claim.kind === 'gone') return gone();
    if (claim.kind === 'refused') return refused(claim);
    if (claim.kind === 'unclaimed') return unclaimed(claim);
    keySentAt = expect('claimed', claim).sentAt;
    mayBeDone = keySentAt !== undefined;
  }

  for (;;) {
    const admission = yield { do: 'admit', deadline: Math.min(deadline, keyGoodUntil()) };
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
    const { outcome, at } = expect('sent', yield { do: 'send', attempt: attempts, timeout });
    if (outcome.kind === 'error' && outcome.reason === 'aborted') return gone();
    if (outcome.kind === 'response' || outcome.sent) keySentAt ??= sendAt;

    if (wouldHave?.decision === 'refused') return settle(outcome); // no answer would have come to be retried

    const keyAge = keySentAt === undefined ? undefined : at - keySentAt;
    const soFar = { attempts, replayable: body.replayable, mayBeDone, memory, keyAge };
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
    const reservation = yield { do: 'reserve', retry, deadline: Math.min(deadline, keyGoodUntil()) };
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
    if (mayBeDone && (isTurnedAway(outcome) || (status === 409 && request.keyed))) {
      return { kind: 'unknown', reason: 'throttled', attempts, retryEnd };
    }
    return { kind: 'forward', unknown: unknown && status >= 500, attempts, retryEnd };
  }

  function refused({ why, retryAfter }: Pick<Refused, 'why' | 'retryAfter'>): Verdict {
    if (retrying) retryEnd = 'deadline';
    if (mayBeDone) return { kind: 'unknown', reason: why, attempts, retryEnd };
    return { kind: 'refuse', why, retryAfter, attempts, retryEnd };
  }

  function unclaimed({ why, isAnswered }: Unclaimed): Verdict {
    if (why === 'key_in_use') return { kind: 'refuse', why, retryAfter: KEY_IN_USE_FOR, attempts, retryEnd };
    if (isAnswered !== true) return { kind: 'unknown', reason: why, attempts, retryEnd };
    return { kind: 'refuse', why, retryAfter: undefined, attempts, retryEnd };
  }

  /** What is sent after this is another write to the upstream. */
  function keyGoodUntil(): Millis {
    if (keySentAt === undefined || request.keyTtl === undefined) return Number.POSITIVE_INFINITY;
    return restsOnKey(request, plan.retry) ? keySentAt + request.keyTtl : Number.POSITIVE_INFINITY;
  }

  function gone(): Verdict {
    return { kind: 'gone', attempts, retryEnd: retrying ? 'client_gone' : undefined };
  }
}

/** When to ask again for what another request is at work on: as soon as can be told. */
const KEY_IN_USE_FOR: Millis = 1000;

/** Request timeout, too early, too many requests, unavailable. */
const TURNED_AWAY: ReadonlySet<number> = new Set([408, 425, 429, 503]);

function isTurnedAway({ status, hints }: Extract<Outcome, { kind: 'response' }>): boolean {
  return TURNED_AWAY.has(status) || isThrottled(status, hints);
}

/** The upstream's considered word, good or bad; a failure that nobody wished to retry is none. */
function isAnswer(outcome: Outcome): boolean {
  return outcome.kind === 'response' && !isTurnedAway(outcome) && outcome.status < 500;
}
