import { describe, expect, test } from 'vitest';
import type { Explanation } from '../../src/telemetry/explanations/build-explanation.ts';
import { Stories } from '../../src/telemetry/explanations/explanation-recorder.ts';
import { makeBackOff } from '../../src/core/backoff/strategies.ts';
import type { LimitView, RequestRecord } from '../../src/core/events/proxy-events.ts';
import type { Hints, Outcome, RetryPolicy } from '../../src/core/exchange/attempt-outcome.ts';
import type { Step, Watched } from '../../src/core/exchange/exchange-observer.ts';
import { failure, response, retryPolicy } from '../support/policy.ts';

type Retry = Extract<Step, { what: 'retry' }>['retry'];

/** What is told of these steps, of a request that arrived at 1000. */
function explain(
  steps: readonly Step[],
  fields: Partial<RequestRecord> = {},
  policy: Partial<RetryPolicy> = {},
): Explanation {
  const record: RequestRecord = {
    ...{ id: 'i-1', at: 1000, route: '/', upstream: 'up', method: 'GET', path: '/', client: 'c', status: 200 },
    ...{ outcome: 'forwarded', reason: undefined, attempts: 1, queued: 0, slept: 0, toHead: 900, took: 1000 },
    ...{ retryAfter: undefined, cut: false },
    ...fields,
  };
  const answered = steps.findLast((step) => step.what === 'answered');
  const watched: Watched = {
    describe: () => ({
      ...{ id: 'i-1', method: 'GET', path: '/', route: '/', routePath: '/', upstream: 'up', client: 'c' },
      ...{ identifiedBy: 'ip', scheme: 'http', version: '1.1', traceparent: undefined, tracestate: undefined },
      retryPolicy: retryPolicy(policy),
    }),
    lastAttempt: () => ({ endpoint: 'a', origin: 'http://a', outcome: answered?.outcome, cause: undefined }),
    steps: [...steps],
    trace: undefined,
  };
  const stories = new Stories({ wallClock: () => Date.UTC(2026, 0, 1) });
  stories.over(watched, record);
  return stories.find('i-1')!;
}

function answered(attempt: number, outcome: Outcome, at: number): Extract<Step, { what: 'answered' }> {
  return { what: 'answered', at, attempt, outcome, endpoint: 'a', cause: undefined };
}

function retried(attempt: number, fields: Partial<Retry>, at: number): Step {
  const retry = { reason: 'status_5xx', delay: 100, source: 'backoff', charged: true, memory: 0, ...fields } as const;
  return { what: 'retry', at, attempt, ordinal: attempt, retry };
}

const textsOf = ({ steps }: Explanation, what: string) =>
  steps.filter((step) => step.what === what).map(({ text }) => text);

describe('a retry', () => {
  test('tells between what its delay was drawn, by the memory of its back-off', () => {
    const backOff = makeBackOff({ strategy: 'decorrelated-jitter', baseInterval: 100, maxInterval: 20_000 });
    const steps = [
      answered(1, response(503), 1010),
      retried(1, { delay: 250, memory: 250 }, 1010),
      answered(2, response(503), 1300),
      retried(2, { delay: 500, memory: 500 }, 1300),
    ];
    const told = explain(steps, {}, { backOff }).steps.filter(({ what }) => what === 'retry');
    expect(told).toMatchObject([
      { strategy: 'decorrelated-jitter', leastSeconds: 0.1, mostSeconds: 0.3 },
      { leastSeconds: 0.1, mostSeconds: 0.75 },
    ]);
    expect(told[1]?.text).toBe(
      'to be sent again in 500 ms (status_5xx): the back-off decorrelated-jitter, drawn from 100 ms to 750 ms',
    );
  });

  test('tells what the upstream asked for, be it by Retry-After or by a spent quota', () => {
    const quota = { remaining: 0, limit: 100, resetIn: 2000, window: undefined };
    const told = explain([
      answered(1, response(429, { quota }), 1010),
      retried(1, { reason: 'status_429', source: 'hint', delay: 2100 }, 1010),
    ]);
    expect(textsOf(told, 'retry')).toEqual([
      'to be sent again in 2.1 s (status_429): the upstream asked for 2 s, chance added 100 ms',
    ]);
    expect(textsOf(told, 'answered')[0]).toContain('its quota: 0 of 100 left, whole again in 2 s');
  });

  test('of what nobody had seen is told as such', () => {
    const told = explain([
      answered(1, failure('connect', false), 1010),
      retried(1, { reason: 'connect', delay: 0 }, 1010),
    ]);
    expect(textsOf(told, 'retry')[0]).toMatch(/^to be sent again at once \(connect\): the upstream had not seen it/);
  });

  test('that was not to be had is told with its reason', () => {
    const told = explain([
      answered(1, response(503), 1010),
      { what: 'denied', at: 1011, why: 'budget_exhausted', attemptTime: 0 },
    ]);
    expect(textsOf(told, 'retry')).toEqual(['not to be sent again: the retry budget of the upstream is spent']);
  });
});

test.each<[Partial<Hints>, string]>([
  [{ retryAfter: 90_000 }, 'Retry-After: 90 s'],
  [{ retryAfter: 200_000 }, 'Retry-After: 3 min 20 s'],
  [{ reason: 'global-rate' }, 'its reason: global-rate'],
  [{ verdict: 'never' }, 'it asked for no other attempt'],
  [{ lock: true }, 'it is about one object, not about the rate'],
  [{ throttled: false }, 'which says nothing of the rate here'],
])('the hint %j is told', (hints, text) => {
  expect(textsOf(explain([answered(1, response(429, hints), 1500)]), 'answered')[0]).toContain(`; ${text}`);
});

test.each<[string, Partial<LimitView>, string]>([
  ['by its upstream', { isProbed: true }, 'the upstream lets nothing through at present but a probe'],
  [
    'by the word of its upstream, which a pin does not outdo',
    { pinned: 20, blockedUntil: 11_000 },
    'the upstream asked that nothing be sent until 2026-01-01T00:00:09.000Z',
  ],
  [
    'by an operator, who has pinned it too',
    { pinned: 20, isStopped: true, blockedUntil: 11_000 },
    'an operator has blocked it until 2026-01-01T00:00:09.000Z',
  ],
])('a request that is blocked %s is told so', (_, fields, text) => {
  const limit: LimitView = {
    ...{
      upstream: 'up',
      nested: '',
      scope: 'upstream',
      key: '',
      state: 'blocked',
      rate: 20,
      ceiling: 20,
      places: undefined,
    },
    ...{ blockedUntil: undefined, quotaLeft: undefined, queued: 0, inFlight: 0, ...fields },
  };
  const grounds = {
    ...{
      limit,
      block: limit.block,
      pinned: limit.pinned,
      forRoom: false,
      estimate: 10_000,
      patience: 100,
      demand: 1,
      share: 1,
    },
    ...{ allowance: 1, backlog: 0, heldFor: 0 },
  };
  const decided = { what: 'decided', at: 1000, decision: 'refused', why: 'blocked', isObserved: false } as const;
  const story = explain([{ ...decided, retryAfter: 10_000, grounds }]);
  expect(textsOf(story, 'decided')[0]).toContain(`refused (blocked): ${text}, `);
});

test('a client that left as soon as it was sent left behind the sending', () => {
  const aborted: Outcome = { kind: 'error', reason: 'aborted', sent: true, took: 0.01 };
  const gone = { what: 'gone', at: 1000.02, during: 'attempt' } as const;
  const told = explain([gone, answered(1, aborted, 1000.05)], { outcome: 'client_gone', status: 0 });
  expect(told.steps.map(({ what }) => what)).toEqual(['arrived', 'decided', 'sent', 'gone', 'answered', 'verdict']);
});

test('what is not kept as a step follows from what is: the passing, the sending, the last answer', () => {
  const ended = response(200);
  const told = explain([answered(1, { ...ended, took: 300 }, 1400)], { attempts: 1 });
  expect(told.steps.map(({ at, what }) => [at, what])).toEqual([
    [0, 'arrived'],
    [0.1, 'decided'],
    [0.1, 'sent'],
    [0.4, 'answered'],
    [1, 'verdict'],
  ]);
});

test.each<[string, Partial<RequestRecord>, Step[], string]>([
  ['was cut', { cut: true }, [], 'forwarded: the upstream’s 200; the body was cut short'],
  [
    'failed',
    {
      status: 502,
      outcome: 'upstream_error',
      reason: 'reset',
      detail: 'It broke.',
      retryEnd: 'attempts_exhausted',
      attempts: 3,
    },
    [],
    'failed, told as 502 (reset): It broke; not sent again after 3 attempts: as many attempts were made as may be',
  ],
  [
    'was passed on',
    { status: 503, retryEnd: 'upstream_veto' },
    [],
    'forwarded: the upstream’s 503; not sent again: the upstream asked for no other attempt',
  ],
  [
    'was left in the queue',
    { status: 0, outcome: 'client_gone', reason: 'client_gone' },
    [{ what: 'gone', at: 1500, during: 'queue' }],
    'the client went away while it waited for its turn',
  ],
  [
    'would have been sent again',
    { status: 503, wouldRetry: 'status_5xx' },
    [],
    'forwarded: the upstream’s 503; observed: it would have been sent again (status_5xx)',
  ],
])('the verdict on a request that %s', (_, fields, steps, verdict) => {
  expect(explain(steps, fields).verdict).toBe(verdict);
});

test('an answer that is no 429 and refuses for its rate is told as what it is', () => {
  const [text] = textsOf(
    explain([answered(1, response(200, { throttled: true, reason: 'THROTTLED' }), 1500)]),
    'answered',
  );
  expect(text).toContain('was answered with 200');
  expect(text).toContain('; which is a refusal for its rate here; its reason: THROTTLED');
});
