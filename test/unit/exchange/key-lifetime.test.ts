import { describe, expect, test } from 'vitest';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { exchange } from '../../../src/core/exchange/exchange.ts';
import type { RequestFacts } from '../../../src/core/exchange/request-facts.ts';
import type { ExchangeStep, RoutePolicy, StepResult } from '../../../src/core/exchange/steps.ts';
import type { KeyRecord } from '../../../src/core/idempotency/key-record.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import {
  failure,
  requestFacts,
  response,
  retryPolicy,
  routePolicy,
  SEND_ONCE,
} from '../../support/core/policy-builders.ts';

/** The upstream remembers the key for half a second. */
const SHORT = { method: 'POST', keyed: true, keyTtl: 500 } as const;
const CLAIMS = { claims: true } as const;

/** Answers every step, reads of the record included, with these results in order. */
function play(
  answers: readonly StepResult[],
  facts: Partial<RequestFacts> = SHORT,
  policy: Partial<RoutePolicy> = CLAIMS,
) {
  const generator = exchange(requestFacts(facts), routePolicy(policy), () => 0, 0);
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
const claimed = (at: Millis, record?: KeyRecord): StepResult => ({ kind: 'claimed', record, at });
const known = (at: Millis, record?: KeyRecord): StepResult => ({ kind: 'known', record, at });
const admitted = (at: Millis): StepResult => ({ kind: 'admitted', at });
const sent = (outcome: AttemptOutcome, at: Millis): StepResult => ({ kind: 'sent', outcome, at });
const refused = (at: Millis): StepResult => ({ kind: 'refused', why: 'held', retryAfterMs: 3000, at });
const gone = (at: Millis): StepResult => ({ kind: 'gone', at });

const firstSentAt = (at: Millis, isAnswered = false): KeyRecord => ({ firstSentAt: at, isAnswered });

describe('a key is valid until the last millisecond of its lifetime', () => {
  test('at its claim', () => {
    expect(play([read(0), claimed(9, firstSentAt(-491))]).does).toBe('body claim admit');
    const late = play([read(0), claimed(9, firstSentAt(-492)), known(9, firstSentAt(-492))]);
    expect(late.verdict).toMatchObject({ kind: 'unknown', reason: 'key_expired', attempts: 0 });
  });

  test('at its send', () => {
    const record = firstSentAt(0);
    const start = [read(0), claimed(0, record), admitted(10)];
    expect(play([...start, known(500, record)]).last).toMatchObject({ do: 'send', attempt: 1 });
    const late = play([...start, known(501, record), known(501, record)]);
    expect(late.verdict).toMatchObject({ kind: 'unknown', reason: 'key_expired', attempts: 0 });
  });

  test('at the end of a wait for a connection: a failure then is only that failure', () => {
    const record = firstSentAt(0, true);
    const end = (at: Millis) => {
      const failed = sent(failure('timeout', false), at);
      const answers = [read(0), claimed(0, record), admitted(10), known(10, record), failed, known(at, record)];
      return play(answers, SHORT, { ...CLAIMS, retry: SEND_ONCE }).verdict;
    };
    expect(end(500)).toMatchObject({ kind: 'fail', reason: 'timeout', attempts: 1 });
    expect(end(501)).toMatchObject({ kind: 'refuse', why: 'key_expired', attempts: 1 });
  });

  test('but a refusal in its last millisecond is one of the key: no token would come in time', () => {
    const rejected = sent(response(503), 100);
    const start = [
      read(0),
      admitted(20),
      rejected,
      { kind: 'reserved', at: 100 },
      { kind: 'waited', at: 200 },
    ] as const;
    expect(play([...start, refused(519)], SHORT, {}).verdict).toEqual({
      kind: 'refuse',
      why: 'held',
      retryAfterMs: 3000,
      attempts: 1,
      retryOutcome: 'deadline',
    });
    // Nothing took effect and nothing was answered, so the client may try again.
    expect(play([...start, refused(520)], SHORT, {}).verdict).toEqual({
      kind: 'refuse',
      why: 'queue_timeout',
      retryAfterMs: 1000,
      attempts: 1,
      retryOutcome: 'key_expired',
    });
  });

  test('and a response is forwarded however late it comes', () => {
    const answers = [read(0), claimed(0, firstSentAt(0)), admitted(10), known(10, firstSentAt(0))];
    expect(play([...answers, sent(response(201), 4000)]).verdict).toMatchObject({ kind: 'forward', unknown: false });
  });
});

describe('the record of a key', () => {
  const KEYED = { method: 'POST', keyed: true } as const;
  const once = { ...CLAIMS, retry: SEND_ONCE };

  test('is not read again after a response that settles the write, although an earlier one was unresolved', () => {
    const record = firstSentAt(-450);
    const start = [read(0), claimed(0, record), admitted(0), known(0, record)];
    for (const status of [200, 201, 402]) {
      expect(play([...start, sent(response(status), 10)], KEYED, once).verdict).toEqual({
        kind: 'forward',
        unknown: false,
        attempts: 1,
        retryOutcome: undefined,
      });
    }
  });

  test('is not read again for a write of this exchange that is unresolved: its outcome is unknown', () => {
    const broken = sent(failure('reset', true), 10);
    const retried = [broken, { kind: 'reserved', at: 10 }, { kind: 'waited', at: 110 }] as const;
    const refusal = play([read(0), claimed(0), admitted(0), known(0), ...retried, refused(120)], KEYED);
    expect(refusal.verdict).toMatchObject({ kind: 'unknown', reason: 'held' });
  });

  test('as read before the send decides which endpoint may get the write', () => {
    const start = [read(0), claimed(0), admitted(0)];
    expect(play([...start, known(0)], KEYED).last).toMatchObject({ do: 'send', isPinned: false });
    expect(play([...start, known(0, firstSentAt(-5))], KEYED).last).toMatchObject({ do: 'send', isPinned: true });
  });

  test('is not needed any more when the client leaves while it is read', () => {
    const start = [read(0), claimed(0, firstSentAt(-450, true))];
    expect(play([...start, admitted(0), gone(5)], KEYED).verdict).toEqual({
      kind: 'gone',
      unknown: false,
      attempts: 0,
      retryOutcome: undefined,
    });
    expect(play([...start, refused(5), gone(6)], KEYED).verdict).toMatchObject({ kind: 'refuse', why: 'held' });
  });
});

describe('a retry is a success if it got a definite response', () => {
  const retry = retryPolicy({ retryOn: { ...retryPolicy().retryOn, statuses: new Set([503]) } });
  const retried = [
    ...[read(0), admitted(0), sent(response(503), 10)],
    ...([
      { kind: 'reserved', at: 10 },
      { kind: 'waited', at: 110 },
    ] as const),
    admitted(110),
  ];

  test.each<[AttemptOutcome, 'success' | undefined]>([
    [response(200), 'success'],
    [response(404), 'success'],
    [response(499), 'success'],
    [response(500), undefined],
    [response(408), undefined],
    [response(425), undefined],
    [response(429), undefined],
    [response(429, { throttled: false }), undefined],
    [response(200, { throttled: true }), undefined],
  ])('%o: %s', (outcome, retryOutcome) => {
    const { verdict } = play([...retried, sent(outcome, 120)], { method: 'GET' }, { retry });
    expect(verdict).toEqual({ kind: 'forward', unknown: false, attempts: 2, retryOutcome });
  });
});
