import { describe, expect, test } from 'vitest';
import { DrivenExchange, START } from '../../support/core/driven-exchange.ts';
import { failure, limitedTo, response, retryPolicy } from '../../support/core/policy-builders.ts';

const ONE_A_SECOND = { upstream: limitedTo(1), isTokenTaken: true } as const;
/** The queue accepts no wait of a second. */
const SHORT_QUEUE = {
  upstream: { ...limitedTo(1), queue: { maxWait: 100, maxDepth: 10 } },
  isTokenTaken: true,
} as const;

describe('an observer gets', () => {
  test('the start, each send and each outcome, with the number of the attempt', () => {
    const exchange = new DrivenExchange()
      .start()
      .answer(response(503))
      .at(START + 500, (driver) => driver.onWake());
    exchange.answer(failure('connect', false), START + 600);
    expect(exchange.observed).toEqual(['start', 'send 1', 'outcome 1 503 1010', 'send 2', 'outcome 2 connect 1600']);
  });

  test('no step of a request that is admitted and answered at once', () => {
    expect(new DrivenExchange().start().answer(response(200)).steps).toEqual([]);
  });

  test('a retry with its plan, and the wait for it as long as it was', () => {
    const exchange = new DrivenExchange()
      .start()
      .answer(response(503))
      .at(START + 150, (driver) => driver.onWake());
    const retry = { reason: 'status_5xx', delay: 100, source: 'backoff', usesBudget: true, memory: 0 };
    expect(exchange.steps).toEqual([
      { what: 'retry', at: START + 10, retry, attempt: 1, ordinal: 1 },
      { what: 'waited', at: START + 150, slept: 140 },
    ]);
    expect(exchange.driver.slept).toBe(140);
  });

  test('a denied retry, with the reason and the time reserved for the attempt', () => {
    const options = {
      facts: { method: 'PUT' },
      policy: { timeout: 200, retry: retryPolicy({ minAttemptTime: 150 }) },
    } as const;
    const exchange = new DrivenExchange(options).start().answer(response(503));
    expect(exchange.steps).toEqual([{ what: 'denied', at: START + 10, why: 'deadline', attemptTime: 150 }]);
    expect(exchange.verdict).toMatchObject({ kind: 'forward', retryOutcome: 'deadline' });
    expect(exchange.ofType('retry')).toEqual([]);
  });

  test('that it was queued and that it left the queue, with the figures of the first decision', () => {
    const exchange = new DrivenExchange(ONE_A_SECOND).start();
    expect(exchange.steps).toMatchObject([
      { what: 'decided', at: START, decision: 'queued', why: undefined, retryAfterMs: undefined, isObserved: false },
    ]);
    expect(exchange.steps[0]).toHaveProperty('details.estimatedWait', 1000);
    exchange.wakeGate();
    expect(exchange.effects).toEqual(['body', 'send 1']);
    expect(exchange.steps.slice(1)).toEqual([
      { what: 'dequeued', at: 2000, waited: 1000, why: undefined, retryAfterMs: undefined, details: undefined },
    ]);
    expect(exchange.driver.queued).toBe(1000);
  });

  test('a refusal on arrival, with its Retry-After and its figures', () => {
    const exchange = new DrivenExchange(SHORT_QUEUE).start();
    const { verdict } = exchange;
    expect(verdict).toMatchObject({ kind: 'refuse', attempts: 0 });
    if (verdict?.kind !== 'refuse') return;
    expect(exchange.steps).toMatchObject([
      {
        what: 'decided',
        decision: 'refused',
        why: verdict.why,
        retryAfterMs: verdict.retryAfterMs,
        isObserved: false,
        details: { estimatedWait: 1000, maxWait: 100 },
      },
    ]);
  });

  test('a refusal in the queue, with its Retry-After and its figures', () => {
    const exchange = new DrivenExchange(ONE_A_SECOND).start();
    const refusal = { kind: 'refused', why: 'queue_timeout', retryAfterMs: 3000 } as const;
    exchange.at(START + 700, (driver) => driver.onAdmission(refusal, START + 700));
    expect(exchange.verdict).toMatchObject({ kind: 'refuse', why: 'queue_timeout', retryAfterMs: 3000 });
    expect(exchange.steps.slice(1)).toMatchObject([
      {
        what: 'dequeued',
        at: START + 700,
        waited: 700,
        why: 'queue_timeout',
        retryAfterMs: 3000,
        details: { estimatedWait: 1000 },
      },
    ]);
  });
});

test('without an observer, the figures behind a decision are not computed', () => {
  const exchange = new DrivenExchange({ ...ONE_A_SECOND, isObserved: false }).start();
  exchange.at(START + 700, (driver) =>
    driver.onAdmission({ kind: 'refused', why: 'queue_timeout', retryAfterMs: 3000 }, START + 700),
  );
  expect(exchange.explanations).toBe(0);
});

describe('in observe mode', () => {
  const observing = { mode: 'observe' } as const;

  test('a request that would have passed has no step', () => {
    const exchange = new DrivenExchange(observing).start();
    expect(exchange.steps).toEqual([]);
    expect(exchange.driver.wouldHave).toEqual({ decision: 'passed', why: undefined });
  });

  test('a request that would have been queued is sent at once, and reported as observed', () => {
    const exchange = new DrivenExchange({ ...observing, ...ONE_A_SECOND }).start();
    expect(exchange.effects).toEqual(['body', 'send 1']);
    expect(exchange.steps).toMatchObject([{ what: 'decided', decision: 'queued', isObserved: true }]);
    expect(exchange.driver.wouldHave).toEqual({ decision: 'queued', why: undefined });
  });

  test('its turn in the queue, during the attempt, changes nothing', () => {
    const exchange = new DrivenExchange({ ...observing, ...ONE_A_SECOND }).start().wakeGate();
    expect(exchange.effects).toEqual(['body', 'send 1']);
    exchange.answer(response(200));
    expect(exchange.verdict).toMatchObject({ kind: 'forward', attempts: 1 });
    expect(exchange.driver.queued).toBe(0);
  });

  test('its turn in the queue, after the end, releases its client', () => {
    const exchange = new DrivenExchange({ ...observing, ...ONE_A_SECOND }).start().answer(response(200));
    expect(exchange.ticket.clientSlot).not.toBeUndefined();
    exchange.wakeGate();
    expect(exchange.ticket.clientSlot).toBeUndefined();
  });

  test('a request that would have been refused is sent once, and no retry is reported for it', () => {
    const exchange = new DrivenExchange({ ...observing, ...SHORT_QUEUE }).start().answer(response(503));
    expect(exchange.steps).toMatchObject([{ what: 'decided', decision: 'refused', isObserved: true }]);
    expect(exchange.steps[0]).toHaveProperty('retryAfterMs', undefined);
    expect(exchange.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 1, retryOutcome: undefined });
  });

  test('a retry is reported and not made, and its cost stays spent', () => {
    const exchange = new DrivenExchange(observing).start().answer(response(503));
    expect(exchange.effects).toEqual(['body', 'send 1', 'forward']);
    expect(exchange.verdict).toEqual({
      kind: 'forward',
      unknown: false,
      attempts: 1,
      retryOutcome: undefined,
      wouldRetry: 'status_5xx',
    });
    expect(exchange.gate.view(exchange.now).budgets.get('up')).toBeLessThan(1);
  });
});

test('the event of a failed attempt has its cause and the id of the request', () => {
  const exchange = new DrivenExchange().start();
  exchange.answer({ kind: 'error', reason: 'connect', sent: false, took: 7, cause: 'ECONNREFUSED' });
  const common = { type: 'attempt', upstream: 'up', attempt: 1, request: 'r-1' };
  expect(exchange.ofType('attempt')).toEqual([{ ...common, code: 'connect', cause: 'ECONNREFUSED', took: 7 }]);
});

test('a request that needed no retry reports the end of none', () => {
  const exchange = new DrivenExchange().start().answer(response(200));
  expect(exchange.events.map(({ type }) => type)).not.toContain('retry-end');
});
