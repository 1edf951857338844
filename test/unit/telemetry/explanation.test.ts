import { describe, expect, test } from 'vitest';
import type { Explanation } from '../../../src/telemetry/explanations/build-explanation.ts';
import { ExplanationRecorder } from '../../../src/telemetry/explanations/explanation-recorder.ts';
import { makeBackOff } from '../../../src/core/backoff/strategies.ts';
import type { DecisionDetails } from '../../../src/core/admission/decision-details.ts';
import type { LimitView } from '../../../src/core/events/gate-views.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';
import type { Hints } from '../../../src/core/hints/hints.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { RetryPolicy } from '../../../src/core/retry/retry-policy.ts';
import type { TraceStep, ObservedExchange } from '../../../src/core/exchange/exchange-observer.ts';
import { failure, response, retryPolicy } from '../../support/core/policy-builders.ts';

type Retry = Extract<TraceStep, { what: 'retry' }>['retry'];

/** The explanation of these steps, for a request that arrived at 1000. */
function explain(
  steps: readonly TraceStep[],
  fields: Partial<RequestRecord> = {},
  policy: Partial<RetryPolicy> = {},
): Explanation {
  const record: RequestRecord = {
    ...{ id: 'i-1', at: 1000, route: '/', upstream: 'up', method: 'GET', path: '/', client: 'c', status: 200 },
    ...{
      outcome: 'forwarded',
      reason: undefined,
      attempts: 1,
      queueTime: 0,
      sleepTime: 0,
      timeToHead: 900,
      took: 1000,
    },
    ...{ retryAfterSeconds: undefined, isTruncated: false },
    ...fields,
  };
  const answered = steps.findLast((step) => step.what === 'answered');
  const watched: ObservedExchange = {
    describe: () => ({
      ...{ id: 'i-1', method: 'GET', path: '/', route: '/', routePath: '/', upstream: 'up', client: 'c' },
      ...{ identifiedBy: 'ip', scheme: 'http', version: '1.1', traceparent: undefined, tracestate: undefined },
      retryPolicy: retryPolicy(policy),
    }),
    lastAttempt: () => ({ endpoint: 'a', origin: 'http://a', outcome: answered?.outcome, cause: undefined }),
    steps: [...steps],
    trace: undefined,
  };
  const recorder = new ExplanationRecorder({ wallClock: () => Date.UTC(2026, 0, 1) });
  recorder.onEnd(watched, record);
  return recorder.find('i-1')!;
}

function answered(attempt: number, outcome: AttemptOutcome, at: number): Extract<TraceStep, { what: 'answered' }> {
  return { what: 'answered', at, attempt, outcome, endpoint: 'a', cause: undefined };
}

function retried(attempt: number, fields: Partial<Retry>, at: number): TraceStep {
  const retry = {
    reason: 'status_5xx',
    delay: 100,
    source: 'backoff',
    usesBudget: true,
    memory: 0,
    ...fields,
  } as const;
  return { what: 'retry', at, attempt, ordinal: attempt, retry };
}

const textsOf = ({ steps }: Explanation, what: string) =>
  steps.filter((step) => step.what === what).map(({ text }) => text);

describe('a retry', () => {
  test('has the range of its delay, according to the memory of its backoff', () => {
    const backOff = makeBackOff({ strategy: 'decorrelated-jitter', baseInterval: 100, maxInterval: 20_000 });
    const steps = [
      answered(1, response(503), 1010),
      retried(1, { delay: 250, memory: 250 }, 1010),
      answered(2, response(503), 1300),
      retried(2, { delay: 500, memory: 500 }, 1300),
    ];
    const reported = explain(steps, {}, { backOff }).steps.filter(({ what }) => what === 'retry');
    expect(reported).toMatchObject([
      { strategy: 'decorrelated-jitter', leastSeconds: 0.1, mostSeconds: 0.3 },
      { leastSeconds: 0.1, mostSeconds: 0.75 },
    ]);
    expect(reported[1]?.text).toBe(
      'retry in 500 ms (status_5xx): backoff decorrelated-jitter, drawn from 100 ms to 750 ms',
    );
  });

  test("names the upstream's instruction, by Retry-After or by an exhausted quota", () => {
    const quota = { remaining: 0, limit: 100, resetIn: 2000, window: undefined };
    const reported = explain([
      answered(1, response(429, { quota }), 1010),
      retried(1, { reason: 'status_429', source: 'hint', delay: 2100 }, 1010),
    ]);
    expect(textsOf(reported, 'retry')).toEqual([
      'retry in 2.1 s (status_429): the upstream asked for 2 s, jitter added 100 ms',
    ]);
    expect(textsOf(reported, 'answered')[0]).toContain('quota: 0 of 100 left, resets in 2 s');
  });

  test('that goes to another endpoint states that the first did not process the request', () => {
    const reported = explain([
      answered(1, failure('connect', false), 1010),
      retried(1, { reason: 'connect', delay: 0, usesBudget: false }, 1010),
    ]);
    expect(textsOf(reported, 'answered')[0]).toBe('attempt 1 failed after 0 ms: connect; nothing was sent');
    expect(textsOf(reported, 'retry')[0]).toBe(
      'retry at once (connect), at another endpoint: this one did not process it',
    );
  });

  test('after a reused connection closed does not claim that it was idle, or that the request was not read', () => {
    const closed = { ...failure('reset', true, 30), isStaleConnection: true };
    const reported = explain([
      { ...answered(1, closed, 1010), cause: 'ECONNRESET' },
      retried(1, { reason: 'reset', delay: 0, usesBudget: false }, 1010),
    ]);
    expect(textsOf(reported, 'answered')[0]).toBe(
      'attempt 1 failed after 30 ms: reset, ECONNRESET; the reused connection closed before any part of a response; it may have reached the upstream',
    );
    expect(textsOf(reported, 'retry')[0]).toBe('retry at once (reset), on a new connection');
  });

  test('after a wait of 0 that the backoff chose names the backoff', () => {
    const backOff = makeBackOff({ strategy: 'fixed', baseInterval: 0, maxInterval: 0 });
    const steps = [answered(1, failure('reset', true), 1010), retried(1, { reason: 'reset', delay: 0 }, 1010)];
    expect(textsOf(explain(steps, {}, { backOff }), 'retry')).toEqual(['retry in 0 ms (reset): backoff fixed']);
  });

  test('after a refused stream does not claim that nothing was sent', () => {
    const reported = explain([{ ...answered(1, failure('connect', false), 1010), cause: 'REFUSED_STREAM' }]);
    expect(textsOf(reported, 'answered')[0]).toMatch(/: connect, REFUSED_STREAM; the upstream did not process it$/);
  });

  test('that is denied is reported with its reason', () => {
    const reported = explain([
      answered(1, response(503), 1010),
      { what: 'denied', at: 1011, why: 'budget_exhausted', attemptTime: 0 },
    ]);
    expect(textsOf(reported, 'retry')).toEqual(['not retried: the retry budget of the upstream is spent']);
  });
});

test.each<[Partial<Hints>, string]>([
  [{ retryAfterMs: 90_000 }, 'Retry-After: 90 s'],
  [{ retryAfterMs: 200_000 }, 'Retry-After: 3 min 20 s'],
  [{ reason: 'global-rate' }, 'reason: global-rate'],
  [{ retryAdvice: 'never' }, 'it asked not to retry'],
  [{ lock: true }, 'a conflict on one object, not a rate limit'],
  [{ throttled: false }, 'which does not count as throttled here'],
])('the hint %j is reported', (hints, text) => {
  expect(textsOf(explain([answered(1, response(429, hints), 1500)]), 'answered')[0]).toContain(`; ${text}`);
});

test.each<[string, Partial<LimitView>, string]>([
  ['by its upstream', { isProbed: true }, 'the upstream is blocked: only probes are sent'],
  [
    'by its upstream, which a pin does not override',
    { pinnedRate: 20, blockedUntil: 11_000 },
    'the upstream asked for no requests until 2026-01-01T00:00:09.000Z',
  ],
  [
    'by an operator, who has pinned it too',
    { pinnedRate: 20, isBlockedByOperator: true, blockedUntil: 11_000 },
    'an operator has blocked it until 2026-01-01T00:00:09.000Z',
  ],
])('a request that is blocked %s is reported with that reason', (_, fields, text) => {
  const limit: LimitView = {
    ...{
      upstream: 'up',
      nested: '',
      scope: 'upstream',
      key: '',
      state: 'blocked',
      rate: 20,
      ceiling: 20,
      concurrencyLimit: undefined,
    },
    ...{ blockedUntil: undefined, quotaLeft: undefined, queued: 0, inFlight: 0, ...fields },
  };
  const grounds = {
    ...{
      limit,
      block: limit.block,
      pinnedRate: limit.pinnedRate,
      waitsForConnection: false,
      estimatedWait: 10_000,
      maxWait: 100,
      demand: 1,
      share: 1,
    },
    ...{ allowance: 1, clientBacklog: 0, heldFor: 0, returnSlot: undefined },
  };
  const decided = { what: 'decided', at: 1000, decision: 'refused', why: 'blocked', isObserved: false } as const;
  const explanation = explain([{ ...decided, retryAfterMs: 10_000, details: grounds }]);
  expect(textsOf(explanation, 'decided')[0]).toContain(`refused (blocked): ${text}, `);
});

test.each([
  [
    { size: 12, unanswered: 12, isTest: false },
    '12 of at most 12 requests wait for a response, because more would only be',
    'latency',
  ],
  [
    { size: 12, unanswered: 9, isTest: true },
    '9 of at most 12 requests wait for a response, to see whether more would only be',
    'latency_test',
  ],
  [{ size: 20, unanswered: 9, isTest: true }, '14 of at most 12 requests are in flight', 'rejections'],
  [undefined, '14 of at most 12 requests are in flight', 'rejections'],
])(
  'a request that waits for others to end says how many may be in flight, and why: %o',
  (latencyLimit, text, cause) => {
    const limit: LimitView = {
      ...{ upstream: 'up', nested: '', scope: 'upstream', key: '', state: 'open', rate: 80, ceiling: Infinity },
      ...{ concurrencyLimit: 12, latencyLimit, blockedUntil: undefined, quotaLeft: undefined, queued: 0, inFlight: 14 },
    };
    const details: DecisionDetails = {
      ...{ limit, block: undefined, pinnedRate: undefined, waitsForConnection: false, estimatedWait: 50, maxWait: 100 },
      ...{ demand: 90, share: 5, allowance: 1, clientBacklog: 0, heldFor: 0, returnSlot: undefined },
    };
    const decided = { what: 'decided', at: 1000, decision: 'queued', why: undefined, isObserved: false } as const;
    const explanation = explain([{ ...decided, retryAfterMs: undefined, details }]);
    expect(textsOf(explanation, 'decided')[0]).toContain(text);
    expect(explanation.steps.find(({ what }) => what === 'decided')).toMatchObject({
      ...{ places: 12, placesCause: cause },
      unanswered: cause === 'rejections' ? null : latencyLimit?.unanswered,
    });
  },
);

test.each<[TraceStep & { what: 'decided' | 'dequeued' | 'denied' }, string]>([
  [decidedFor('queued', undefined), 'estimated wait 50 ms, maximum wait 100 ms (this client disconnects after 950 ms)'],
  [
    decidedFor('refused', 'over_share'),
    'it would have waited 50 ms, longer than the maximum of 100 ms (this client disconnects after 950 ms)',
  ],
  [
    { ...decidedFor('refused', 'queue_timeout'), what: 'dequeued', waited: 100 },
    'it would have waited another 50 ms (this client disconnects after 950 ms)',
  ],
  [
    { what: 'denied', at: 1000, why: 'deadline', attemptTime: 20, clientTimeout: 950 },
    'its token would not have come before the deadline: this client disconnects after 950 ms',
  ],
])('a wait that the timeout of the client bounds says so: %#', (step, text) => {
  const { what } = step;
  const explanation = explain([step]);
  expect(explanation.steps.map((each) => each['text']).join('\n')).toContain(text);
  if (what !== 'decided') return;
  expect(explanation.steps.find((each) => each.what === what)).toMatchObject({ clientTimeoutSeconds: 0.95 });
});

/** A decision on a request whose client disconnects after 950 ms. */
function decidedFor(decision: 'queued' | 'refused', why: 'over_share' | 'queue_timeout' | undefined) {
  const details: DecisionDetails = {
    ...{ limit: undefined, block: undefined, pinnedRate: undefined, waitsForConnection: false, estimatedWait: 50 },
    ...{ maxWait: 100, clientTimeout: 950, demand: 90, share: 5, allowance: 1, clientBacklog: 0, heldFor: 0 },
    returnSlot: undefined,
  };
  return { what: 'decided', at: 1000, decision, why, isObserved: false, retryAfterMs: undefined, details } as const;
}

test('a request that leaves free places in flight to others says so', () => {
  const limit: LimitView = {
    ...{ upstream: 'up', nested: '', scope: 'upstream', key: '', state: 'open', rate: 80, ceiling: Infinity },
    ...{ concurrencyLimit: 9, latencyLimit: { size: 9, unanswered: 7, isTest: false }, blockedUntil: undefined },
    ...{ quotaLeft: undefined, queued: 12, inFlight: 7 },
  };
  const details: DecisionDetails = {
    ...{ limit, block: undefined, pinnedRate: undefined, waitsForConnection: false, estimatedWait: 50, maxWait: 100 },
    ...{ demand: 90, share: 5, allowance: 1, clientBacklog: 0, heldFor: 0, returnSlot: undefined, leavesPlaces: true },
  };
  const decided = { what: 'decided', at: 1000, decision: 'queued', why: undefined, isObserved: false } as const;
  expect(textsOf(explain([{ ...decided, retryAfterMs: undefined, details }]), 'decided')[0]).toContain(
    '7 of at most 9 requests wait for a response, because more would only be answered later, this client, or its address, has more than its share of these, and leaves the free places to others, 12 requests are queued',
  );
});

test.each([
  [
    true,
    'this client, or its address, has most of the connections to the upstream, and leaves the free ones to others',
  ],
  [false, 'all connections to the upstream are in use'],
])('a request that waits for a connection says why: leaves free ones to others %s', (leavesConnections, text) => {
  const details: DecisionDetails = {
    ...{ limit: undefined, block: undefined, pinnedRate: undefined, waitsForConnection: true, leavesConnections },
    ...{ estimatedWait: 311, maxWait: 100, demand: 90, share: 5, allowance: 1, clientBacklog: 0, heldFor: 0 },
    returnSlot: undefined,
  };
  const decided = { what: 'decided', at: 1000, decision: 'queued', why: undefined, isObserved: false } as const;
  expect(textsOf(explain([{ ...decided, retryAfterMs: undefined, details }]), 'decided')[0]).toContain(text);
});

test.each<[DecisionDetails['returnSlot'], number, string]>([
  ['shared', 4311, '4 s after its turn, because refused requests get return times one after another, at the rate'],
  ['own', 30_311, '30 s (the maximum) after its turn, because this client, or its address, asks for more than 3 times'],
  [
    'after_own',
    3311,
    '3 s after its turn, because this client, or others at its address, already have return times: those',
  ],
  [
    'yielding',
    3311,
    '3 s after its turn, because this client, or its address, has most of the connections, or of the places in flight, and leaves',
  ],
  ['stalled', 2311, '2 s after its turn, because no connection has become free for that long'],
])(
  'a Retry-After by a return time of the kind %s has the reason why it is later than the turn',
  (returnSlot, given, text) => {
    const details: DecisionDetails = {
      ...{ limit: undefined, block: undefined, pinnedRate: undefined, waitsForConnection: false },
      ...{ estimatedWait: 311, maxWait: 100, demand: 90, share: 5, allowance: 1, clientBacklog: 0, heldFor: 0 },
      returnSlot,
    };
    const decided = { what: 'decided', at: 1000, decision: 'refused', why: 'over_share', isObserved: false } as const;
    const seconds = Math.round(given / 1000);
    const end = { outcome: 'refused', reason: 'over_share', status: 429, retryAfterSeconds: seconds } as const;
    const explanation = explain([{ ...decided, retryAfterMs: given, details }], { ...end, retryAfterFrom: 'tidegate' });
    expect(textsOf(explanation, 'decided')[0]).toMatch(/; Retry-After: [\d.]+ s, /);
    expect(textsOf(explanation, 'decided')[0]).toContain(` s, ${text}`);
    expect(explanation.steps.find(({ what }) => what === 'decided')).toMatchObject({ returnSlot });
    expect(explanation.verdict).toContain(
      `Retry-After: ${seconds} s, because it would have waited 311 ms, longer than the maximum of 100 ms; this is ${text}`,
    );
  },
);

test('a Retry-After at the turn of the request has no other reason', () => {
  const details: DecisionDetails = {
    ...{ limit: undefined, block: undefined, pinnedRate: undefined, waitsForConnection: false },
    ...{ estimatedWait: 311, maxWait: 100, demand: 9, share: 5, allowance: 1, clientBacklog: 0, heldFor: 0 },
    returnSlot: 'shared',
  };
  const decided = { what: 'decided', at: 1000, decision: 'refused', why: 'over_share', isObserved: false } as const;
  const explanation = explain([{ ...decided, retryAfterMs: 511, details }]);
  expect(textsOf(explanation, 'decided')[0]).toMatch(/; Retry-After: 511 ms$/);
});

test('a departure of the client right after the send is reported after the send', () => {
  const aborted: AttemptOutcome = { kind: 'error', reason: 'aborted', sent: true, took: 0.01 };
  const gone = { what: 'gone', at: 1000.02, during: 'attempt' } as const;
  const reported = explain([gone, answered(1, aborted, 1000.05)], { outcome: 'client_gone', status: 0 });
  expect(reported.steps.map(({ what }) => what)).toEqual(['arrived', 'decided', 'sent', 'gone', 'answered', 'verdict']);
});

test('steps that are not stored are derived from others: the admission, the send and the last response', () => {
  const ended = response(200);
  const reported = explain([answered(1, { ...ended, took: 300 }, 1400)], { attempts: 1 });
  expect(reported.steps.map(({ at, what }) => [at, what])).toEqual([
    [0, 'arrived'],
    [0.1, 'decided'],
    [0.1, 'sent'],
    [0.4, 'answered'],
    [1, 'verdict'],
  ]);
});

test.each<[string, Partial<RequestRecord>, TraceStep[], string]>([
  ['was cut', { isTruncated: true }, [], 'forwarded: the upstream’s 200; the body was truncated'],
  [
    'was cut by a reset',
    { isTruncated: true, cause: 'ECONNRESET' },
    [],
    'forwarded: the upstream’s 200; the body was truncated (ECONNRESET)',
  ],
  [
    'failed',
    {
      status: 502,
      outcome: 'upstream_error',
      reason: 'reset',
      detail: 'It broke.',
      retryOutcome: 'attempts_exhausted',
      attempts: 3,
    },
    [],
    'failed, answered with 502 (reset): It broke; not retried after 3 attempts: the maximum number of attempts was made',
  ],
  [
    'was passed on',
    { status: 503, retryOutcome: 'upstream_veto' },
    [],
    'forwarded: the upstream’s 503; not retried: the upstream asked not to retry',
  ],
  [
    'was left in the queue',
    { status: 0, outcome: 'client_gone', reason: 'client_gone' },
    [{ what: 'gone', at: 1500, during: 'queue' }],
    'the client disconnected while the request was queued',
  ],
  [
    'would have been sent again',
    { status: 503, wouldRetry: 'status_5xx' },
    [],
    'forwarded: the upstream’s 503; observe mode: it would have been retried (status_5xx)',
  ],
])('the decision is reported for a request that %s', (_, fields, steps, verdict) => {
  expect(explain(steps, fields).verdict).toBe(verdict);
});

test('a throttling response other than a 429 is reported as throttling', () => {
  const [text] = textsOf(
    explain([answered(1, response(200, { throttled: true, reason: 'THROTTLED' }), 1500)]),
    'answered',
  );
  expect(text).toContain('received 200');
  expect(text).toContain('; which counts as throttled here; reason: THROTTLED');
});
