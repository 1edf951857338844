/** Outcomes at one endpoint while others accept requests, and outcomes on a connection that was being closed. */
import { describe, expect, test } from 'vitest';
import { chooseRetry } from '../../../src/core/retry/choose-retry.ts';
import { classifyForEndpoint } from '../../../src/core/endpoints/classify-for-endpoint.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { BlockedPart } from '../../../src/core/rate/breaker/request-attributes.ts';
import { classifyBlockedPart } from '../../../src/core/rate/breaker/request-attributes.ts';
import type { RequestFacts } from '../../../src/core/exchange/request-facts.ts';
import { failure, requestFacts, response, retryPolicy, SEND_ONCE } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const alone = (outcome: AttemptOutcome): AttemptOutcome => ({ ...outcome, otherEndpointsWork: true });
const stale: AttemptOutcome = { kind: 'error', reason: 'reset', sent: true, took: 1, isStaleConnection: true };
const FIRST = { attempts: 1, isBodyReplayable: true, mayHaveTakenEffect: false, memory: 7 };

function choose(outcome: AttemptOutcome, facts: Partial<RequestFacts> = {}, soFar = FIRST) {
  return chooseRetry(requestFacts(facts), retryPolicy(), outcome, soFar, () => 0.5);
}

describe('a retry', () => {
  test('of a request that one endpoint refused goes to the next endpoint at once, free of charge', () => {
    const retry = { reason: 'connect', delay: 0, source: 'backoff', usesBudget: false, memory: 7 };
    expect(choose(alone(failure('connect', false)), { method: 'POST' })).toEqual({ kind: 'retry', retry });
    expect(choose(failure('connect', false))).toMatchObject({ retry: { delay: 100, usesBudget: true } });
  });

  test('of a request bound to one endpoint waits for the backoff, and is charged', () => {
    const pinned = { ...FIRST, isPinned: true };
    const refused = alone(failure('connect', false));
    expect(choose(refused, { method: 'POST', keyed: true }, pinned)).toMatchObject({
      retry: { delay: 100, usesBudget: true },
    });
  });

  test('of a request that may have taken effect waits, and is charged', () => {
    for (const outcome of [response(503), failure('reset', true), failure('timeout', true)]) {
      expect(choose(alone(outcome))).toMatchObject({ retry: { delay: 100, usesBudget: true } });
    }
  });

  test('of a request sent on a closing connection is made at once, if the request is repeatable', () => {
    const retry = { reason: 'reset', delay: 0, source: 'backoff', usesBudget: false, memory: 7 };
    expect(choose(stale)).toEqual({ kind: 'retry', retry });
    expect(choose(stale, { method: 'POST', keyed: true })).toEqual({ kind: 'retry', retry });
    expect(choose(stale, { method: 'POST' })).toEqual({ kind: 'stop', why: 'not_idempotent' });
    expect(choose(stale, {}, { ...FIRST, isBodyReplayable: false })).toEqual({ kind: 'stop', why: 'body_too_large' });
    expect(choose(stale, {}, { ...FIRST, attempts: 4 })).toEqual({ kind: 'stop', why: 'attempts_exhausted' });
  });
});

function blockedPart({ limit, now }: World): BlockedPart | undefined {
  const block = limit.meter.block?.(now);
  return block && classifyBlockedPart(block.scope);
}

describe('the limits of the upstream are not affected', () => {
  const after = (outcome: AttemptOutcome): World => {
    const world = new World({ respond: () => ({ outcome, after: 1 }) });
    for (let i = 0; i < 50; i += 1) world.call({ policy: { retry: SEND_ONCE } });
    world.runUntil(100);
    return world;
  };

  test.each([
    ['a refused connection', failure('connect', false)],
    ['a broken one', failure('reset', true)],
    ['no response in time', failure('timeout', true)],
    ['a 503', response(503)],
  ])('by %s at one endpoint while others accept requests', (_, outcome) => {
    expect(after(outcome).limit.meter.phase).toBe('blocked');
    expect(after(alone(outcome)).limit.meter.phase).toBe('open');
  });

  test('for other clients by a failed connection while the endpoint has connections', () => {
    const refused = failure('connect', false);
    expect(blockedPart(after(refused))).toBe('upstream');
    expect(blockedPart(after({ ...refused, isEndpointConnected: true } as AttemptOutcome))).toBe('client');
  });

  test('by a failure on a connection that was being closed', () => {
    expect(after(stale).limit.meter.phase).toBe('open');
  });

  test('except by a 429, which concerns the upstream as a whole', () => {
    expect(after(alone(response(429))).limit.meter.phase).not.toBe('open');
  });

  test('by a probe at such an endpoint, which is repeated', () => {
    const world = new World({ respond: () => ({ outcome: failure('connect', false), after: 1 }), random: () => 0.5 });
    for (let i = 0; i < 10; i += 1) world.call({ policy: { retry: SEND_ONCE } });
    world.runUntil(1000);
    expect(world.limit.meter.phase).toBe('blocked');
    const probe = world.arrive();
    expect(probe.admission).toEqual({ kind: 'admitted' });
    world.send(probe);
    const next = world.arrive();
    expect(next.admission).toBeUndefined();
    world.answer(probe, alone(failure('connect', false)));
    expect(next.admission).toEqual({ kind: 'admitted' });
    world.serve(next);
    expect(world.limit.meter.phase).not.toBe('blocked');
  });
});

test('an endpoint that throttles counts as working, whatever the status', () => {
  expect(classifyForEndpoint(response(503))).toBe('fails');
  expect(classifyForEndpoint(response(503, { throttled: true }))).toBe('works');
});

test('a cached failure does not count for the endpoint; a cached success shows that the endpoint responds', () => {
  const cached = (status: number) => classifyForEndpoint(response(status, { isFromCache: true }));
  expect([502, 503, 504].map(cached)).toEqual(['nothing', 'nothing', 'nothing']);
  expect(cached(200)).toBe('works');
  expect(classifyForEndpoint(response(503, { throttled: true, isFromCache: true }))).toBe('works');
});
