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
import { chooseRetry } from '../retry/choose-retry.ts';
import type { Millis, Outcome, Random, RequestFacts, RetryEnd, Verdict } from './attempt-outcome.ts';
import { isSafe, isThrottled } from './attempt-outcome.ts';
import { WriteHistory } from '../idempotency/write-history.ts';
import { classifyWrite, mayHaveHappened } from '../idempotency/write-outcome.ts';
import type { Answer, BodyRead, Claimed, Plan, Refused, Script, Step, Unclaimed } from './steps.ts';
import { expect } from './steps.ts';

/**
 * @param arrived when the request's head had been read
 * @param answerTime how long the upstream takes to answer a write, as far as is known; 0 where it is not
 */
export function* exchange(
  arriving: RequestFacts,
  plan: Plan,
  random: Random,
  arrived: Millis,
  answerTime: () => Millis = () => 0,
): Script {
  let request = arriving;
  let attempts = 0;
  let memory = 0;
  const isWrite = !isSafe(request);
  /** From where its write may be done on, nothing is told as if it were not. */
  const history = new WriteHistory(plan.retry);
  /** Its key was claimed: others may have a part in its write, before it or at the same time. */
  let claimed: Claimed | undefined;
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
    if (body.keyed === true) request = { ...request, keyed: true };
  }

  if (plan.claims === true && request.keyed && isWrite) {
    const claim = yield { do: 'claim', deadline: deadline - attemptTime() };
    if (claim.kind === 'gone') return gone();
    if (claim.kind === 'unclaimed') return unclaimed(claim);
    claimed = expect('claimed', claim);
    history.recall(claimed.record);
    if (claimed.at > history.goodUntil(request)) return yield* expired();
  }

  for (;;) {
    const until = Math.min(deadline - attemptTime(), history.goodUntil(request));
    const admission = yield { do: 'admit', deadline: until };
    if (admission.kind === 'gone') return gone();
    if (admission.kind === 'refused') {
      return yield* admission.at >= history.goodUntil(request) ? expired() : refuse(admission);
    }

    const { at: admittedAt, wouldHave } = expect('admitted', admission);
    let sendAt = admittedAt;
    if (body === undefined) {
      const read = yield { do: 'body' };
      if (read.kind === 'gone') return gone();
      body = expect('body', read);
      deadline += read.at - admission.at; // the deadline pauses while the client uploads
      sendAt = read.at;
    }
    if (claimed !== undefined) yield* lookAgain(); // others may have sent it since: with `concurrent: pass`, from the start or by a reload
    const startBy = history.goodUntil(request);
    if (sendAt > startBy) return yield* expired();

    attempts += 1;
    const timeout = Math.max(1, Math.min(plan.perTryTimeout, deadline - sendAt));
    const isPinned = history.isPinned(request);
    const step = { do: 'send', attempt: attempts, timeout, startBy, isPinned } as const;
    const { outcome, at } = expect('sent', yield step);
    const soFar = { attempts, replayable: body.replayable, memory, mayBeDone: history.mayBeDone };
    history.add(request, outcome, sendAt);
    if (outcome.kind === 'error' && outcome.reason === 'aborted') return gone();
    if (outcome.kind === 'error' && !outcome.sent && at > startBy) return yield* expired();

    if (wouldHave?.decision === 'refused') return yield* settle(outcome); // no answer would have come to be retried

    const { wasAnswered } = history;
    const known = { ...soFar, wasAnswered, keyAge: history.ageAt(at), isPinned: history.isPinned(request) };
    const choice = chooseRetry(request, plan.retry, outcome, known, random);
    if (choice.kind === 'settled') {
      if (retrying && isFinal(outcome)) retryEnd = 'success';
      return plainly(outcome) ?? (yield* settle(outcome)); // nearly all end here: without another generator
    }
    if (choice.kind === 'stop') {
      retryEnd = choice.why;
      return yield* settle(outcome);
    }

    const { retry } = choice;
    const keptFree = attemptTime();
    const retryBy = Math.min(deadline - keptFree, history.goodUntil(request));
    const reservation = yield { do: 'reserve', retry, deadline: retryBy, attemptTime: keptFree };
    if (reservation.kind === 'denied') {
      retryEnd = reservation.why;
      return yield* settle(outcome);
    }
    expect('reserved', reservation);
    if (plan.mode === 'observe') return { ...(yield* settle(outcome)), wouldRetry: retry.reason };
    retrying = true;
    memory = retry.memory;

    const wait = yield { do: 'wait', ms: retry.delay };
    if (wait.kind === 'gone') return gone();
    if (wait.kind === 'draining') return yield* refuse({ why: 'draining', retryAfter: 1000 });
    expect('waited', wait);
  }

  /** The last word on an outcome that is not retried, where nothing else is to be looked at; undefined where there is. */
  function plainly(outcome: Outcome): Verdict | undefined {
    if (outcome.kind === 'error') return undefined;
    if (!isWrite) return { kind: 'forward', unknown: false, attempts, retryEnd };
    const meaning = classifyWrite(outcome, plan.retry.notProcessed);
    if (meaning !== 'may_have_happened' && meaning !== 'answered') return undefined;
    return { kind: 'forward', unknown: meaning === 'may_have_happened', attempts, retryEnd };
  }

  /** The last word on any that is not retried. */
  function* settle(outcome: Outcome): Deciding {
    if (outcome.kind === 'error') {
      const kind = mayHaveHappened(request, outcome) || (yield* mayBeDone()) ? 'unknown' : 'fail';
      return { kind, reason: outcome.reason, attempts, retryEnd };
    }
    const verdict = plainly(outcome);
    if (verdict !== undefined) return verdict;
    const meaning = classifyWrite(outcome, plan.retry.notProcessed);
    // This speaks of its own attempt only, whoever it comes from; a 409, of the one before that is at work.
    if (!(yield* mayBeDone())) return { kind: 'forward', unknown: false, attempts, retryEnd };
    const said = meaning === 'not_processed' ? meaning : 'rejected';
    const reason = isThrottled(outcome.status, outcome.hints) ? 'throttled' : said;
    return { kind: 'unknown', reason, status: outcome.status, attempts, retryEnd };
  }

  function* refuse({ why, retryAfter }: Pick<Refused, 'why' | 'retryAfter'>): Deciding {
    if (retrying) retryEnd = 'deadline';
    if (yield* mayBeDone()) return { kind: 'unknown', reason: why, attempts, retryEnd };
    return { kind: 'refuse', why, retryAfter, attempts, retryEnd };
  }

  function unclaimed({ why, mayBeDone: isOpen }: Unclaimed): Verdict {
    const retryAfter = COME_BACK_IN;
    if (why === 'draining' && isOpen) return { kind: 'unknown', reason: why, attempts, retryEnd };
    return { kind: 'refuse', why, retryAfter, attempts, retryEnd };
  }

  /** The upstream has forgotten the key: sent again it would be another write. */
  function* expired(): Deciding {
    yield* lookAgain();
    if (retrying) retryEnd = 'key_expired';
    if (history.mayBeDone) return { kind: 'unknown', reason: 'key_expired', attempts, retryEnd };
    if (history.wasAnswered) return { kind: 'refuse', why: 'key_expired', retryAfter: undefined, attempts, retryEnd };
    return { kind: 'refuse', why: 'queue_timeout', retryAfter: COME_BACK_IN, attempts, retryEnd };
  }

  function gone(): Verdict {
    const end = retrying ? 'client_gone' : undefined;
    return { kind: 'gone', unknown: history.isOwnOpen, attempts, retryEnd: end };
  }

  /** Asked before anything is told as if it had no effect: what others know of it may have changed since. */
  function* mayBeDone(): Generator<Step, boolean, Answer> {
    if (!history.isOwnOpen) yield* lookAgain();
    return history.mayBeDone;
  }

  function* lookAgain(): Generator<Step, void, Answer> {
    if (claimed !== undefined) history.recall(expect('known', yield { do: 'look' }).record);
  }

  /**
   * The least time that an attempt of a write needs. With less, a certain refusal would become an unknown outcome. Before the first
   * attempt no outcome is known yet, so half of the timeout stays for the queue.
   */
  function attemptTime(): Millis {
    const { minAttemptTime } = plan.retry;
    if (!isWrite || minAttemptTime === undefined) return 0;
    const most = attempts === 0 ? plan.timeout / 2 : plan.timeout;
    return Math.min(Math.max(minAttemptTime, Math.min(answerTime(), plan.perTryTimeout)), most);
  }
}

type Deciding = Generator<Step, Verdict, Answer>;

/** When to ask again for what another request is at work on: as soon as can be told. */
const COME_BACK_IN: Millis = 1000;

/** Request timeout, too early, unavailable. */
const TURNED_AWAY: ReadonlySet<number> = new Set([408, 425, 503]);

/** The upstream's considered word, good or bad; a failure that nobody wished to retry is none. */
function isFinal(outcome: Outcome): boolean {
  if (outcome.kind === 'error' || outcome.status >= 500) return false;
  return outcome.status !== 429 && !TURNED_AWAY.has(outcome.status) && !isThrottled(outcome.status, outcome.hints);
}
