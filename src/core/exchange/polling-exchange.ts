/**
 * The life of a request whose client waits for a result that is not ready yet (a 202, for example): a sequence of exchanges,
 * each with its own attempts and timeout.
 *
 *     exchange ──► ready, failed, or the wait is over? ──yes──► forward
 *        ▲              │ no
 *        └──── wait ◄── poll ──no──► forward the response in hand
 *
 * The last poll is made as the wait ends, so no response has to be kept. The body is read once.
 */
import { exchange } from './exchange.ts';
import type { NextPoll } from '../polling/poll-schedule.ts';
import { PollSchedule } from '../polling/poll-schedule.ts';
import type { Millis, Random } from '../scalars.ts';
import type { RequestFacts } from './request-facts.ts';
import type { RetryOutcome } from '../retry/retry-policy.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';
import type {
  StepResult,
  BodyReadResult,
  RoutePolicy,
  AdmissionRefused,
  ExchangeGenerator,
  SendResult,
  ExchangeStep,
} from './steps.ts';
import { expectResult } from './steps.ts';

/**
 * The life of any request, polled or not.
 * @param arrivedAt when the head of the request had been read
 * @param expectedTime as for `exchange`. Not used for a polled request, which is sent again anyway if its time is short.
 * @param clientTimeout as for `exchange`. Not used for a polled request, whose client says how long it waits.
 */
export function runExchange(
  request: RequestFacts,
  policy: RoutePolicy,
  random: Random,
  arrivedAt: Millis,
  expectedTime?: () => Millis,
  clientTimeout?: Millis,
): ExchangeGenerator {
  const { poll, mode } = policy;
  const { preferredWait, replaySafety } = request;
  if (poll === undefined || preferredWait === undefined || mode === 'observe' || replaySafety === 'never') {
    return exchange(request, policy, random, arrivedAt, expectedTime, clientTimeout);
  }
  return pollingExchange(request, policy, new PollSchedule(poll, preferredWait, arrivedAt), random, arrivedAt);
}

function* pollingExchange(
  request: RequestFacts,
  policy: RoutePolicy,
  polling: PollSchedule,
  random: Random,
  arrivedAt: Millis,
): ExchangeGenerator {
  let attempts = 0;
  let retryEnd: RetryOutcome | undefined;
  let startedAt = arrivedAt;
  let body: BodyReadResult | undefined;

  for (;;) {
    const facts = body === undefined ? request : { ...request, expectsContinue: false };
    const round: ExchangeRound = yield* runRound(exchange(facts, policy, random, startedAt), polling, body, startedAt);
    const { verdict, sent, refused } = round;
    body = round.body;
    attempts += verdict.attempts;

    let next: NextPoll | undefined;
    const notReady = verdict.kind === 'forward' && sent !== undefined && polling.isNotReady(sent.outcome);
    if (notReady) {
      if (verdict.attempts > 1) retryEnd = 'success';
      if (body?.replayable === true) next = polling.choose(sent.outcome, sent.at, random);
    } else {
      retryEnd = verdict.retryOutcome ?? retryEnd;
      if (verdict.kind === 'refuse' && refused !== undefined) {
        next = polling.postpone(refused.why, refused.retryAfterMs, refused.at);
      }
    }
    const currentVerdict: ExchangeVerdict = {
      ...verdict,
      attempts,
      retryOutcome: retryEnd,
      polls: polling.count,
      notReady: notReady || undefined,
    };
    if (next === undefined) return currentVerdict;

    const { poll, after, decidedAt } = next;
    const reservation = yield { do: 'poll', poll, after, deadline: decidedAt + poll.delay + policy.timeout };
    if (reservation.kind === 'denied') return currentVerdict;
    expectResult('reserved', reservation);

    const wait = yield { do: 'wait', ms: poll.delay };
    const counts = { attempts, retryOutcome: retryEnd, polls: polling.count };
    if (wait.kind === 'gone') return { kind: 'gone', unknown: false, ...counts };
    const isLast = wait.kind === 'draining';
    const remaining = decidedAt + poll.requestedDelay - wait.at;
    if (isLast && remaining > 0) return { kind: 'refuse', why: 'draining', retryAfterMs: remaining, ...counts };
    if (!isLast) expectResult('waited', wait);
    polling.onPollStart(next, wait.at, isLast);
    startedAt = wait.at;
  }
}

/** How one exchange ended, and its last results. */
interface ExchangeRound {
  readonly verdict: ExchangeVerdict;
  readonly sent: SendResult | undefined;
  /** Present if the refusal ended the exchange. */
  readonly refused: AdmissionRefused | undefined;
  readonly body: BodyReadResult | undefined;
}

/** Runs one exchange to its end. A response that says "not ready" is not retried. @param knownBody the body, if an earlier round read it */
function* runRound(
  steps: ExchangeGenerator,
  polling: PollSchedule,
  knownBody: BodyReadResult | undefined,
  startedAt: Millis,
): Generator<ExchangeStep, ExchangeRound, StepResult> {
  let body = knownBody;
  let sent: SendResult | undefined;
  let refused: AdmissionRefused | undefined;
  let iteration = steps.next();
  while (iteration.done !== true) {
    const step = iteration.value;
    let result: StepResult;
    if (step.do === 'body' && body !== undefined) result = { ...body, at: startedAt };
    else if (step.do === 'reserve' && sent !== undefined && polling.isNotReady(sent.outcome)) {
      result = { kind: 'denied', why: 'attempts_exhausted', at: sent.at };
    } else result = yield step;
    if (result.kind === 'body') {
      if (body === undefined) polling.onBodyRead(result.at);
      body = result;
    }
    if (result.kind === 'sent') sent = result;
    refused = result.kind === 'refused' ? result : undefined;
    iteration = steps.next(result);
  }
  return { verdict: iteration.value, sent, refused, body };
}
