/** What one endpoint comes to while others work, and what a connection that was being closed comes to. */
import { describe, expect, test } from 'vitest';
import { chooseRetry } from '../../src/core/retry/choose-retry.ts';
import { judgeEndpoint } from '../../src/core/endpoints/outlier-detection.ts';
import type { Outcome, RequestFacts } from '../../src/core/exchange/attempt-outcome.ts';
import { failure, requestFacts, response, retryPolicy, SEND_ONCE, World } from '../support/policy.ts';

const alone = (outcome: Outcome): Outcome => ({ ...outcome, othersWork: true });
const stale: Outcome = { kind: 'error', reason: 'reset', sent: true, took: 1, stale: true };
const FIRST = { attempts: 1, replayable: true, mayBeDone: false, memory: 7 };

function choose(outcome: Outcome, facts: Partial<RequestFacts> = {}, soFar = FIRST) {
  return chooseRetry(requestFacts(facts), retryPolicy(), outcome, soFar, () => 0.5);
}

describe('a retry', () => {
  test('of what one endpoint refused goes to the next at once, and is not charged', () => {
    const retry = { reason: 'connect', delay: 0, source: 'backoff', charged: false, memory: 7 };
    expect(choose(alone(failure('connect', false)), { method: 'POST' })).toEqual({ kind: 'retry', retry });
    expect(choose(failure('connect', false))).toMatchObject({ retry: { delay: 100, charged: true } });
  });

  test('of what only this endpoint may get waits until it is back, and is charged', () => {
    const pinned = { ...FIRST, isPinned: true };
    const refused = alone(failure('connect', false));
    expect(choose(refused, { method: 'POST', keyed: true }, pinned)).toMatchObject({
      retry: { delay: 100, charged: true },
    });
  });

  test('of what may have been done there waits, and is charged', () => {
    for (const outcome of [response(503), failure('reset', true), failure('timeout', true)]) {
      expect(choose(alone(outcome))).toMatchObject({ retry: { delay: 100, charged: true } });
    }
  });

  test('of what was sent on a connection being closed is made at once, where it is safe', () => {
    const retry = { reason: 'reset', delay: 0, source: 'backoff', charged: false, memory: 7 };
    expect(choose(stale)).toEqual({ kind: 'retry', retry });
    expect(choose(stale, { method: 'POST', keyed: true })).toEqual({ kind: 'retry', retry });
    expect(choose(stale, { method: 'POST' })).toEqual({ kind: 'stop', why: 'not_idempotent' });
    expect(choose(stale, {}, { ...FIRST, replayable: false })).toEqual({ kind: 'stop', why: 'body_too_large' });
    expect(choose(stale, {}, { ...FIRST, attempts: 4 })).toEqual({ kind: 'stop', why: 'attempts_exhausted' });
  });
});

describe('nothing is learned of the upstream', () => {
  const after = (outcome: Outcome): World => {
    const world = new World({ respond: () => ({ outcome, after: 1 }) });
    for (let i = 0; i < 50; i += 1) world.call({ plan: { retry: SEND_ONCE } });
    world.runUntil(100);
    return world;
  };

  test.each([
    ['a refused connection', failure('connect', false)],
    ['a broken one', failure('reset', true)],
    ['no answer in time', failure('timeout', true)],
    ['a 503', response(503)],
  ])('from %s at one endpoint while others work', (_, outcome) => {
    expect(after(outcome).limit.meter.phase).toBe('blocked');
    expect(after(alone(outcome)).limit.meter.phase).toBe('open');
  });

  test('from a connection that was being closed', () => {
    expect(after(stale).limit.meter.phase).toBe('open');
  });

  test('but a 429 is of the upstream as a whole', () => {
    expect(after(alone(response(429))).limit.meter.phase).not.toBe('open');
  });

  test('and a probe that met such an endpoint is made again', () => {
    const world = new World({ respond: () => ({ outcome: failure('connect', false), after: 1 }), random: () => 0.5 });
    for (let i = 0; i < 10; i += 1) world.call({ plan: { retry: SEND_ONCE } });
    world.runUntil(1000);
    expect(world.limit.meter.phase).toBe('blocked');
    const probe = world.arrive();
    expect(probe.told).toEqual({ kind: 'admitted' });
    world.send(probe);
    const next = world.arrive();
    expect(next.told).toBeUndefined();
    world.answer(probe, alone(failure('connect', false)));
    expect(next.told).toEqual({ kind: 'admitted' });
    world.serve(next);
    expect(world.limit.meter.phase).not.toBe('blocked');
  });
});

test('an endpoint that refuses for its rate works, whatever the status', () => {
  expect(judgeEndpoint(response(503))).toBe('fails');
  expect(judgeEndpoint(response(503, { throttled: true }))).toBe('works');
});
