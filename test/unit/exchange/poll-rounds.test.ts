import { describe, expect, test } from 'vitest';
import { runExchange } from '../../../src/core/exchange/polling-exchange.ts';
import type { RequestFacts } from '../../../src/core/exchange/request-facts.ts';
import type { ExchangeStep, RoutePolicy, StepResult } from '../../../src/core/exchange/steps.ts';
import type { KeyRecord } from '../../../src/core/idempotency/key-record.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import {
  failure,
  fixedDelay,
  pollPolicy,
  requestFacts,
  response,
  routePolicy,
} from '../../support/core/policy-builders.ts';

const WAITS = { preferredWait: 30_000 } as const;
const POLLS = { timeout: 5000, perTryTimeout: 2000, poll: pollPolicy({ backOff: fixedDelay(4000) }) } as const;

/** Answers every step with these results in order. */
function play(answers: readonly StepResult[], facts: Partial<RequestFacts> = WAITS, policy: Partial<RoutePolicy> = {}) {
  const generator = runExchange(requestFacts(facts), routePolicy({ ...POLLS, ...policy }), () => 0, 0);
  const steps: ExchangeStep[] = [];
  let result = generator.next();
  for (const answer of answers) {
    if (result.done === true) throw new Error(`over before it could be given '${answer.kind}'`);
    steps.push(result.value);
    result = generator.next(answer);
  }
  if (result.done !== true) steps.push(result.value);
  const verdict = result.done === true ? result.value : undefined;
  return { does: steps.map((step) => step.do).join(' '), last: steps.at(-1), verdict };
}

const read = (at: Millis): StepResult => ({ kind: 'body', replayable: true, at });
const admitted = (at: Millis): StepResult => ({ kind: 'admitted', at });
const answered = (status: number, at: Millis, hints = {}): StepResult => ({
  kind: 'sent',
  outcome: response(status, hints),
  at,
});
const reserved = (at: Millis): StepResult => ({ kind: 'reserved', at });
const waited = (at: Millis): StepResult => ({ kind: 'waited', at });

/** The response is not ready, and the wait for the poll has begun. */
const FIRST: readonly StepResult[] = [read(0), admitted(0), answered(202, 10), reserved(10)];

test('a request whose client does not wait is sent once', () => {
  const { verdict } = play([read(0), admitted(0), answered(202, 10)], {});
  expect(verdict).toEqual({ kind: 'forward', unknown: false, attempts: 1, retryOutcome: undefined });
});

describe('a request that expects 100 Continue', () => {
  const expects = { ...WAITS, expectsContinue: true };
  const uploaded = [admitted(0), read(100), answered(202, 110), reserved(110), waited(4110)];

  test('has its body read after its admission, and once for all polls', () => {
    const polled = play([...uploaded, admitted(4110), answered(200, 4120)], expects);
    expect(polled.does).toBe('admit body send poll wait admit send');
    expect(polled.verdict).toMatchObject({ kind: 'forward', attempts: 2, polls: 2 });
  });

  test('has the whole timeout for each poll, from the start of the poll', () => {
    const { last } = play([...uploaded, admitted(6110)], expects);
    expect(last).toMatchObject({ do: 'send', timeout: 2000, startBy: 8110 });
    const queuedLong = play([...uploaded, admitted(8110)], expects);
    expect(queuedLong.last).toMatchObject({ do: 'send', timeout: 1000, startBy: 9110 });
  });
});

describe('a result is not polled', () => {
  test('if the response that says "not ready" leaves an earlier write unknown', () => {
    const record: KeyRecord = { firstSentAt: -100, isAnswered: false };
    const conflict = { kind: 'sent', outcome: response(409), at: 10 } as const;
    const known = { kind: 'known', record, at: 10 } as const;
    const answers = [read(0), { kind: 'claimed', record, at: 0 } as const, admitted(0), known, conflict, known];
    const policy = { claims: true, poll: pollPolicy({ notReady: new Set([409]) }) };
    const { verdict } = play(answers, { ...WAITS, method: 'POST', keyed: true }, policy);
    expect(verdict).toMatchObject({
      kind: 'unknown',
      reason: 'rejected',
      status: 409,
      attempts: 1,
      retryOutcome: 'attempts_exhausted',
    });
  });

  test('if the gate refuses a retry of a poll whose effect is unknown', () => {
    const broken = { kind: 'sent', outcome: failure('reset', true), at: 4020 } as const;
    const poll = [waited(4010), admitted(4010), broken, reserved(4020), waited(4120)];
    const refused = { kind: 'refused', why: 'held', retryAfterMs: 1000, at: 4120 } as const;
    const { verdict } = play([...FIRST, ...poll, refused], { ...WAITS, method: 'PUT' });
    expect(verdict).toMatchObject({ kind: 'unknown', reason: 'held', attempts: 2, polls: 2 });
  });
});

describe('the end of a wait for a poll', () => {
  test('by a client that leaves leaves nothing unknown: the result was only not ready', () => {
    const { verdict } = play([...FIRST, { kind: 'gone', at: 500 }], { ...WAITS, method: 'POST' });
    expect(verdict).toEqual({ kind: 'gone', unknown: false, attempts: 1, retryOutcome: undefined, polls: undefined });
  });

  test('by a shutdown makes the last poll at once, in the millisecond of the first response too', () => {
    const { last } = play([...FIRST, { kind: 'draining', at: 10 }]);
    expect(last).toMatchObject({ do: 'admit', deadline: 5010 });
  });

  test.each([
    [1009, { kind: 'refuse', why: 'draining', retryAfterMs: 1, attempts: 1 }],
    [1010, undefined],
  ] as const)('by a shutdown makes no poll sooner than the upstream asked for (at %i ms)', (at, verdict) => {
    const hinted = answered(202, 10, { retryAfterMs: 1000 });
    const played = play([read(0), admitted(0), hinted, reserved(10), { kind: 'draining', at }]);
    if (verdict === undefined) expect(played.last).toMatchObject({ do: 'admit' });
    else expect(played.verdict).toMatchObject(verdict);
  });

  test('with another kind of result is a fault of the interpreter', () => {
    expect(() => play([...FIRST, admitted(4010)])).toThrow("'waited'");
  });
});
