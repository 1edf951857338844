/**
 * The life of a request whose client waits for what is not ready yet (a 202, say): one exchange after another, each with the
 * attempts and the time of a request of its own.
 *
 *     exchange ──► ready, failed, or the wait is over? ──yes──► forward
 *        ▲              │ no
 *        └──── wait ◄── poll ──no──► forward what is in hand
 *
 * The last one is made as the wait ends, so that no answer has to be kept. The body is read once.
 */
import { exchange } from './exchange.ts';
import type { NextPoll } from '../polling/poll-schedule.ts';
import { Polling } from '../polling/poll-schedule.ts';
import type { Millis, Random, RequestFacts, RetryEnd, Verdict } from './attempt-outcome.ts';
import type { Answer, BodyRead, Plan, Refused, Script, Sent, Step } from './steps.ts';
import { expect } from './steps.ts';

/** The life of any request. @param arrived when its head had been read @param answerTime as of `exchange`: of one that is polled, what has little time left is asked for again anyway */
export function live(
  request: RequestFacts,
  plan: Plan,
  random: Random,
  arrived: Millis,
  answerTime?: () => Millis,
): Script {
  const { poll, mode } = plan;
  if (poll === undefined || request.wait === undefined || mode === 'observe') {
    return exchange(request, plan, random, arrived, answerTime);
  }
  return polled(request, plan, new Polling(poll, request.wait, arrived), random, arrived);
}

function* polled(request: RequestFacts, plan: Plan, polling: Polling, random: Random, arrived: Millis): Script {
  let attempts = 0;
  let retryEnd: RetryEnd | undefined;
  let begun = arrived;
  let body: BodyRead | undefined;

  for (;;) {
    const facts = body === undefined ? request : { ...request, expectsContinue: false };
    const round: Round = yield* follow(exchange(facts, plan, random, begun), polling, body, begun);
    const { verdict, sent, refused } = round;
    body = round.body;
    attempts += verdict.attempts;

    let next: NextPoll | undefined;
    const notReady = verdict.kind === 'forward' && sent !== undefined && polling.isNotReady(sent.outcome);
    if (notReady) {
      if (verdict.attempts > 1) retryEnd = 'success';
      if (body?.replayable === true) next = polling.choose(sent.outcome, sent.at, random);
    } else {
      retryEnd = verdict.retryEnd ?? retryEnd;
      if (verdict.kind === 'refuse' && refused !== undefined) {
        next = polling.putOff(refused.why, refused.retryAfter, refused.at);
      }
    }
    const inHand: Verdict = { ...verdict, attempts, retryEnd, polls: polling.count, notReady: notReady || undefined };
    if (next === undefined) return inHand;

    const { poll, after, now } = next;
    const reservation = yield { do: 'poll', poll, after, deadline: now + poll.delay + plan.timeout };
    if (reservation.kind === 'denied') return inHand;
    expect('reserved', reservation);

    const wait = yield { do: 'wait', ms: poll.delay };
    const soFar = { attempts, retryEnd, polls: polling.count };
    if (wait.kind === 'gone') return { kind: 'gone', unknown: false, ...soFar };
    const isLast = wait.kind === 'draining';
    const early = now + poll.asked - wait.at;
    if (isLast && early > 0) return { kind: 'refuse', why: 'draining', retryAfter: early, ...soFar };
    if (!isLast) expect('waited', wait);
    polling.begin(next, wait.at, isLast);
    begun = wait.at;
  }
}

/** What one exchange came to, and what it was told last. */
interface Round {
  readonly verdict: Verdict;
  readonly sent: Sent | undefined;
  /** Where that was its end. */
  readonly refused: Refused | undefined;
  readonly body: BodyRead | undefined;
}

/** Runs an exchange to its end. What is not ready is no failure, whatever retries are made of. @param known the body, where one before has read it */
function* follow(
  script: Script,
  polling: Polling,
  known: BodyRead | undefined,
  begun: Millis,
): Generator<Step, Round, Answer> {
  let body = known;
  let sent: Sent | undefined;
  let refused: Refused | undefined;
  let result = script.next();
  while (result.done !== true) {
    const step = result.value;
    let answer: Answer;
    if (step.do === 'body' && body !== undefined) answer = { ...body, at: begun };
    else if (step.do === 'reserve' && sent !== undefined && polling.isNotReady(sent.outcome)) {
      answer = { kind: 'denied', why: 'attempts_exhausted', at: sent.at };
    } else answer = yield step;
    if (answer.kind === 'body') body = answer;
    if (answer.kind === 'sent') sent = answer;
    refused = answer.kind === 'refused' ? answer : undefined;
    result = script.next(answer);
  }
  return { verdict: result.value, sent, refused, body };
}
