/** An endpoint that asks for a wait: it is ejected until then, and another takes over. */
import { describe, expect, test } from 'vitest';
import { requestedWait } from '../../../src/core/endpoints/classify-for-endpoint.ts';
import type { AttributedRequest } from '../../../src/core/endpoints/failing-parts.ts';
import type { EndpointChange } from '../../../src/core/endpoints/outlier-detection.ts';
import { EndpointBalancer } from '../../../src/core/endpoints/outlier-detection.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { makeRequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { chooseRetry } from '../../../src/core/retry/choose-retry.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { failure, requestFacts, response, retryPolicy } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const requestOf = (n: number): AttributedRequest => ({
  attributes: makeRequestAttributes(`client-${n}`, `client-${n}`, 0, `/path-${n}`, ''),
});

class Endpoints {
  readonly balancer: EndpointBalancer;
  readonly changes: EndpointChange[] = [];
  now: Millis = 1000;
  #requests = 0;

  constructor(count: number, maxEjectionPercent = 50, chance = 0) {
    const settings = {
      consecutiveGatewayErrors: 3,
      baseEjectionTime: 10_000,
      maxEjectionTime: 35_000,
      maxEjectionPercent,
    };
    this.balancer = new EndpointBalancer(
      count,
      10,
      settings,
      () => chance,
      (change) => this.changes.push(change),
    );
  }

  /** The endpoint answers a request, each time another one unless given, with a wait. */
  wait(index: number, wait: Millis, { request = requestOf((this.#requests += 1)), sentAt = this.now } = {}): boolean {
    return this.balancer.onWaitRequested(index, wait, sentAt, this.now, request);
  }

  choose(): number {
    return this.balancer.choose(undefined, true, this.now);
  }
}

describe('an endpoint that asks for a wait', () => {
  test('is ejected until then, plus up to a fifth, and takes one trial', () => {
    const endpoints = new Endpoints(2, 50, 0.5);
    expect(endpoints.wait(0, 2000)).toBe(true);
    expect(endpoints.changes).toEqual([{ kind: 'ejected', index: 0, cause: 'throttled', time: 2200 }]);
    endpoints.now += 2199;
    expect([endpoints.choose(), endpoints.choose()]).toEqual([1, 1]);
    endpoints.now += 1;
    expect(endpoints.choose()).toBe(0);
    endpoints.balancer.onAttemptStart(0);
    expect(endpoints.choose()).toBe(1); // one trial at a time
    endpoints.balancer.onSuccess(0, endpoints.now, endpoints.now);
    expect(endpoints.changes.at(-1)).toEqual({ kind: 'returned', index: 0, cause: 'trial' });
  });

  test('is ejected for maxEjectionTime at most', () => {
    const endpoints = new Endpoints(2);
    endpoints.wait(0, 300_000);
    expect(endpoints.changes).toMatchObject([{ time: 35_000 }]);
  });

  test('is ejected again by a wait at its trial, without a longer ejection for failures', () => {
    const endpoints = new Endpoints(2);
    endpoints.wait(0, 1000);
    endpoints.now += 1000;
    endpoints.choose();
    endpoints.balancer.onAttemptStart(0);
    expect(endpoints.wait(0, 1500)).toBe(true);
    endpoints.now += 1500;
    endpoints.balancer.onSuccess(0, endpoints.now, endpoints.now);
    for (let i = 0; i < 3; i += 1) endpoints.balancer.onFailure(0, endpoints.now, endpoints.now);
    expect(endpoints.changes.map((change) => (change.kind === 'ejected' ? change.time : change.cause))).toEqual([
      1000,
      1500,
      'trial',
      10_000,
    ]);
  });

  test('stays ejected for longer if a request that was already under way gets a longer wait', () => {
    const endpoints = new Endpoints(2);
    endpoints.wait(0, 1000);
    expect(endpoints.wait(0, 3000, { sentAt: endpoints.now - 10 })).toBe(true);
    expect(endpoints.changes).toHaveLength(1);
    endpoints.now += 2999;
    expect(endpoints.choose()).toBe(1);
    endpoints.now += 1;
    expect(endpoints.choose()).toBe(0);
  });

  test('stays in rotation if no other endpoint is', () => {
    const endpoints = new Endpoints(2);
    expect([endpoints.wait(0, 1000), endpoints.wait(1, 1000)]).toEqual([true, false]);
    expect(endpoints.changes).toHaveLength(1);
    expect(new Endpoints(1).wait(0, 1000)).toBe(false);
  });

  test('stays in rotation if the other fails as often as an ejected one', () => {
    const endpoints = new Endpoints(2);
    const fail = (): unknown => endpoints.balancer.onFailure(1, endpoints.now, endpoints.now);
    expect(endpoints.wait(0, 30_000)).toBe(true);
    for (let i = 0; i < 3; i += 1) fail();
    expect(endpoints.changes.map(({ kind }) => kind)).toEqual(['ejected', 'returned']);
    expect(endpoints.wait(0, 30_000)).toBe(false);
    endpoints.balancer.onSuccess(1, endpoints.now, endpoints.now);
    expect(endpoints.wait(0, 30_000)).toBe(true);
  });

  test('stays in rotation if as many are ejected as may be', () => {
    const endpoints = new Endpoints(4, 25);
    expect([endpoints.wait(0, 1000), endpoints.wait(1, 1000)]).toEqual([true, false]);
    expect(new Endpoints(4, 0).wait(0, 1000)).toBe(false);
  });

  test('stays in rotation if another has rejected the same client or path, until one of these succeeds', () => {
    const endpoints = new Endpoints(5, 80);
    const request = requestOf(0);
    expect([endpoints.wait(0, 1000, { request }), endpoints.wait(1, 1000, { request })]).toEqual([true, false]);
    endpoints.balancer.onSuccess(2, endpoints.now, endpoints.now, request);
    expect(endpoints.wait(1, 1000, { request })).toBe(true);
  });
});

describe('the wait that an endpoint asks for', () => {
  test.each<[string, AttemptOutcome, Millis | undefined]>([
    ['a 429', response(429, { retryAfterMs: 1000 }), 1000],
    ['a 503', response(503, { retryAfterMs: 1000 }), 1000],
    ['a 429 without Retry-After', response(429), undefined],
    ['a 429 that may be repeated at once', response(429, { retryAfterMs: 0 }), undefined],
    ['a 502', response(502, { retryAfterMs: 1000 }), undefined],
    ['a redirect with Retry-After', response(301, { retryAfterMs: 1000 }), undefined],
    ['a 403 that counts as throttled', response(403, { retryAfterMs: 1000, throttled: true }), 1000],
    ['a 429 about one object', response(429, { retryAfterMs: 1000, lock: true }), undefined],
    ['a 503 from a cache', response(503, { retryAfterMs: 1000, isFromCache: true }), undefined],
    ['a broken connection', failure('reset', true), undefined],
  ])('is that of %s', (_, outcome, wait) => {
    expect(requestedWait(outcome)).toBe(wait);
  });
});

const taken = (status: number): AttemptOutcome => ({
  ...(response(status, { retryAfterMs: 9000 }) as AttemptOutcome & { kind: 'response' }),
  otherEndpointsWork: true,
  isTakenOver: true,
});

describe('a rejection that another endpoint takes over', () => {
  const progress = { attempts: 1, isBodyReplayable: true, mayHaveTakenEffect: false, memory: 0 };
  const retryOf = (status: number, isPinned = false) =>
    chooseRetry(requestFacts({}), retryPolicy(), taken(status), { ...progress, isPinned }, () => 0);

  test('is retried at once; a 503 uses the budget', () => {
    expect(retryOf(429)).toMatchObject({ retry: { reason: 'status_429', delay: 0, usesBudget: false } });
    expect(retryOf(503)).toMatchObject({ retry: { reason: 'status_5xx', delay: 0, usesBudget: true } });
  });

  test('waits if the write is bound to the endpoint', () => {
    expect(retryOf(429, true)).toMatchObject({ retry: { delay: 9000, source: 'hint' } });
  });

  test('neither cuts the rate, nor holds the client, nor applies the quota', () => {
    const quota = { remaining: 0, limit: 10, resetIn: 60_000, window: 60_000 };
    const outcome = taken(429) as AttemptOutcome & { kind: 'response' };
    const world = new World();
    world.serve(world.arrive(), { ...outcome, hints: { ...outcome.hints, quota } });
    expect(world.limit.meter.phase).toBe('open');
    expect(world.arrive().admission).toEqual({ kind: 'admitted' });
    expect(world.events.filter(({ type }) => type === 'throttled')).toHaveLength(1);

    const whole = new World();
    whole.serve(whole.arrive(), { ...outcome, isTakenOver: false });
    expect(whole.limit.meter.phase).not.toBe('open');
    expect(whole.arrive().admission).toMatchObject({ kind: 'refused', why: 'held' });
  });
});
