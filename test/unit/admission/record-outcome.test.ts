import { describe, expect, test, vi } from 'vitest';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { AttemptOutcome, ErrorOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { failure, limitedTo, response, upstreamSettings } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const CLIENT_TIMEOUT = { ...failure('aborted', true), isClientTimeout: true } as ErrorOutcome;

/** Twelve calls in flight together, all with this outcome. */
function after(outcome: AttemptOutcome): World {
  const world = new World({ random: () => 0.5 });
  const requests = Array.from({ length: 12 }, (_, i) => world.arrive({ client: `${i}` }));
  for (const request of requests) world.send(request);
  for (const request of requests) world.answer(request, outcome);
  return world;
}

const OWN: LimitRef = { upstream: 'up', nested: '', scope: 'client', key: 'me' };
const own = (world: World) => world.store.findLimit(OWN);

describe('the rate', () => {
  test('is cut once by a group of 429s, and blocked by three later ones in a row', () => {
    const world = after(response(429));
    expect(world.limit.meter.phase).toBe('backoff');
    for (const now of [1000, 2000, 3000]) {
      world.now = now;
      world.serve(world.arrive({ client: `${now}` }), response(429));
    }
    expect(world.limit.meter.phase).toBe('blocked');
    expect(world.ofType('cut').map(({ cause }) => cause)).toEqual(['first', 'blocked']);
    expect(world.ofType('cut')[0]).toMatchObject({ upstream: 'up', scope: 'upstream', from: Infinity });
    expect(world.ofType('limit-state').map(({ from, to }) => `${from} > ${to}`)).toEqual([
      'open > backoff',
      'backoff > blocked',
    ]);
  });

  test('is unchanged by a 429 about one object', () => {
    const world = after(response(429, { lock: true }));
    expect(world.limit.meter.phase).toBe('open');
    expect(world.ofType('throttled')).toEqual([]);
  });

  test.each([200, 403, 503])('is cut by a %i that means throttling as by a 429', (status) => {
    const world = after(response(status, { throttled: true }));
    expect(world.limit.meter.phase).toBe('backoff');
    expect(world.ofType('cut').map(({ cause }) => cause)).toEqual(['first']);
    expect(world.ofType('throttled')).toHaveLength(12);
  });

  test('is unchanged by a 429 that does not mean throttling', () => {
    const world = after(response(429, { throttled: false }));
    expect(world.limit.meter.phase).toBe('open');
    expect(world.ofType('throttled')).toEqual([]);
  });

  test('has the reason of the upstream for throttling in its events', () => {
    const world = new World();
    world.serve(world.arrive({ client: 'a' }), response(429, { reason: 'global-rate' }));
    world.serve(world.arrive({ client: 'b' }), response(429));
    expect(world.ofType('throttled')).toEqual([
      { type: 'throttled', upstream: 'up', reason: 'global-rate', status: 429 },
      { type: 'throttled', upstream: 'up', reason: 'unspecified', status: 429 },
    ]);
  });
});

describe('the health of the upstream', () => {
  test.each<[string, AttemptOutcome]>([
    ['502', response(502)],
    ['503', response(503)],
    ['504', response(504)],
    ['a refused connection', failure('connect', false)],
    ['a reset', failure('reset', true)],
    ['a timeout', failure('timeout', true)],
  ])('%s counts against it', (_, outcome) => {
    const world = after(outcome);
    expect(world.limit.meter.phase).toBe('blocked');
    expect(world.ofType('cut').map(({ cause }) => cause)).toEqual(['errors']);
  });

  test.each<[string, AttemptOutcome]>([
    ['a fault of one operation', response(500)],
    ['a definite response', response(404)],
    ['the departure of a client', failure('aborted', true)],
    ['the timeout of a client', CLIENT_TIMEOUT],
    ['a process that may open no more files', failure('too_many_files', false)],
  ])('%s does not count against it', (_, outcome) => {
    const world = after(outcome);
    expect(world.limit.meter.phase).toBe('open');
    expect(world.ofType('cut')).toEqual([]);
  });

  test('a Retry-After of a 503 delays the probes of that client, and after a failed probe those of all clients', () => {
    const world = after(response(503, { retryAfterMs: 700 }));
    const { meter } = world.limit;
    expect(meter.blockedUntil).toBe(50);
    world.runUntil(50);
    world.serve(world.arrive({ client: 'another' }), response(503, { retryAfterMs: 700 }));
    expect(meter.blockedUntil).toBe(760);
  });
});

describe('the timeout of a client', () => {
  const latencyOf = (outcome: AttemptOutcome): { readonly world: World; readonly timeouts: number } => {
    const rate = { ...upstreamSettings().rate, learnsFromLatency: true };
    const world = new World({ random: () => 0.5, upstream: { rate } });
    const { meter } = world.limit;
    for (let i = 0; i < 64; i += 1) world.serve(world.arrive(), response(200));
    const onFailed = vi.spyOn(meter, 'onFailed');
    const request = world.arrive();
    world.send(request);
    world.now += 900;
    world.answer(request, outcome);
    return { world, timeouts: onFailed.mock.calls.filter(([{ isAbandoned }]) => isAbandoned === true).length };
  };

  test('shows how long the upstream has not responded, once the request is sent', () => {
    expect(latencyOf(CLIENT_TIMEOUT).timeouts).toBe(1);
    expect(latencyOf({ ...CLIENT_TIMEOUT, sent: false }).timeouts).toBe(0);
    expect(latencyOf(failure('aborted', true)).timeouts).toBe(0);
  });

  test('ends the probe of a block without a result', () => {
    const world = after(failure('reset', true));
    const { meter } = world.limit;
    world.runUntil(meter.blockedUntil ?? 0);
    world.serve(world.arrive(), CLIENT_TIMEOUT);
    expect(meter.phase).toBe('blocked');
    expect(meter.delay(world.now)).toBe(0);
  });
});

describe('the retry budget', () => {
  test.each<[AttemptOutcome, number]>([
    [response(200), 0.2],
    [response(404), 0.2],
    [response(429, { lock: true }), 0.2],
    [response(429), 0],
    [response(500), 0],
    [response(503), 0],
    [failure('reset', true), 0],
    [failure('aborted', true), 0],
    [CLIENT_TIMEOUT, 0],
    [failure('too_many_files', false), 0],
  ])('after %o earns %d', (outcome, earned) => {
    const world = new World();
    const { retryBudget } = world.store.upstream('up');
    for (let i = 0; i < 10; i += 1) retryBudget.spend();
    world.serve(world.arrive(), outcome);
    expect(retryBudget.left).toBeCloseTo(earned / 10, 9);
  });
});

describe('a Retry-After', () => {
  test('holds the client that received it, under a shared limit', () => {
    const world = new World();
    world.serve(world.arrive({ client: 'a' }), response(429, { retryAfterMs: 1000 }));
    expect(world.arrive({ client: 'a' }).admission).toMatchObject({ why: 'held', retryAfterMs: 1000 });
    expect(world.gate.view(0).clients.byState.held).toBe(1);
  });

  test('stops the limit, under a per-client limit', () => {
    const world = new World({ upstream: { scope: 'client' } });
    world.serve(world.arrive({ refs: [OWN] }), response(429, { retryAfterMs: 5000 }));
    expect(own(world)?.meter.delay(0)).toBe(5000);
    expect(world.arrive({ refs: [OWN] }).admission).toMatchObject({ kind: 'refused', why: 'held', retryAfterMs: 5000 });
    expect(world.gate.view(0).clients.byState.held).toBe(0);
  });

  test('of zero holds no client', () => {
    const world = new World();
    world.serve(world.arrive(), response(429, { retryAfterMs: 0 }));
    expect(world.gate.view(0).clients.byState.held).toBe(0);
  });

  test('is divided among the active clients when it is counted as a cost', () => {
    const grownAfter = (clients: number): number => {
      const world = new World({ random: () => 0.5 });
      for (let i = 0; i < clients; i += 1) world.serve(world.arrive({ client: `${i}` }));
      world.serve(world.arrive({ client: '0' }), response(429, { retryAfterMs: 4000 }));
      world.now = 5;
      world.serve(world.arrive({ client: 'other' }));
      const { meter } = world.limit;
      for (let now = 1000; now < 60_000; now += 100) {
        meter.advance(now, true);
        if (meter.rate(now) === meter.ceiling) return now - 1000;
      }
      return Number.NaN;
    };
    // K: five times the cost, which is the mean of this cost and zero.
    expect(grownAfter(1)).toBe(10_000);
    expect(grownAfter(2)).toBe(5000);
    expect(grownAfter(10)).toBe(3000);
  });
});

describe('a quota', () => {
  test('stops the limit until its reset when it is spent', () => {
    const world = new World();
    const quota = { remaining: 0, limit: 100, resetIn: 3000, window: 60_000 };
    world.serve(world.arrive(), response(200, { quota }));
    expect(world.arrive().admission).toMatchObject({ kind: 'refused', why: 'blocked', retryAfterMs: 3000 });
    expect(world.gate.view(0).limits[0]).toMatchObject({ state: 'blocked', blockedUntil: 3000, quotaLeft: 0 });
    world.now = 2500;
    const waiting = world.arrive();
    world.runUntil(3000);
    expect([waiting.admission?.kind, waiting.at]).toEqual(['admitted', 3000]);
    expect(world.gate.view(3000).limits[0]).toMatchObject({ state: 'open', blockedUntil: undefined });
  });

  test('paces requests when it runs low', () => {
    const world = new World();
    world.serve(world.arrive(), response(200, { quota: { remaining: 10, limit: 100, resetIn: 2000, window: 20_000 } }));
    const requests = [world.arrive(), world.arrive(), world.arrive()];
    world.runUntil(1000);
    expect(requests.map(({ at }) => at)).toEqual([200, 400, 600]);
  });

  test('never makes the rate faster than what was learned', () => {
    const world = new World({ upstream: limitedTo(2) });
    world.serve(world.arrive(), response(200, { quota: { remaining: 50, limit: 100, resetIn: 1000, window: 1000 } }));
    expect(world.limit.meter.rate(0)).toBe(2);
  });
});

describe('a per-client limit', () => {
  const world = () => new World({ upstream: { scope: 'client' }, random: () => 0.5 });

  test('does not exist before it is met', () => {
    const trial = world();
    for (let i = 0; i < 10; i += 1) trial.serve(trial.arrive({ refs: [OWN] }));
    expect(own(trial)).toBeUndefined();
    expect(trial.gate.view(0).limits).toEqual([]);
  });

  test("is created at its first 429, with the client's demand as its history", () => {
    const trial = world();
    for (let i = 0; i < 200; i += 1) {
      trial.now = 10 * i;
      trial.serve(trial.arrive({ refs: [OWN] }));
    }
    trial.serve(trial.arrive({ refs: [OWN] }), response(429));
    // The client's demand after 2 s at 100 a second: 1 − 1/e of it.
    expect(own(trial)?.meter.ceiling).toBeGreaterThan(55);
    expect(own(trial)?.meter.ceiling).toBeLessThan(66);
    expect(trial.ofType('cut')).toHaveLength(1);
    expect(trial.ofType('cut')[0]).toMatchObject({ scope: 'client', cause: 'first' });
  });

  test('is created once, by the first of many 429s of requests in flight together', () => {
    const trial = world();
    const out = Array.from({ length: 6 }, () => trial.arrive({ refs: [OWN] }));
    for (const request of out) trial.send(request);
    trial.now = 50;
    trial.answer(out[0]!, response(429));
    const limit = own(trial);
    for (const request of out.slice(1)) trial.answer(request, response(429));
    expect(own(trial)).toBe(limit);
    expect(limit?.meter.phase).toBe('backoff');
    expect(trial.ofType('cut').map(({ cause }) => cause)).toEqual(['first']);
  });

  test('applies to no other client', () => {
    const trial = world();
    trial.serve(trial.arrive({ refs: [OWN] }), response(429));
    expect(trial.arrive({ client: 'b', refs: [{ ...OWN, key: 'b' }] }).admission).toEqual({ kind: 'admitted' });
    expect(trial.store.findLimit({ ...OWN, key: 'b' })).toBeUndefined();
  });

  test('exists from the start if it is configured', () => {
    const trial = new World({ upstream: { ...limitedTo(5), scope: 'client' } });
    trial.arrive({ refs: [OWN] });
    expect(trial.arrive({ refs: [OWN] }).admission).toBeUndefined();
    expect(trial.arrive({ client: 'b', refs: [{ ...OWN, key: 'b' }] }).admission).toEqual({ kind: 'admitted' });
  });

  test('is not shared: the excess demand of its client cuts no allowance', () => {
    const trial = new World({ upstream: { ...limitedTo(10), scope: 'client' } });
    const refs = [OWN];
    for (let i = 0; i < 50; i += 1) trial.arrive({ client: `${i}`, refs: [{ ...OWN, key: `${i}` }] });
    for (let i = 0; i < 50; i += 1) trial.arrive({ client: 'me', refs });
    expect(trial.ofType('decision').some(({ decision }) => decision === 'refused')).toBe(true);
    expect(trial.ofType('client-cut')).toEqual([]);
  });

  test('is removed beyond the maximum number, unless it is in use', () => {
    const trial = new World({ upstream: { ...limitedTo(5), scope: 'client' }, maxTracked: 10 });
    const refOf = (i: number): LimitRef => ({ ...OWN, key: String(i) });
    trial.arrive({ refs: [refOf(0)] });
    const waiting = trial.arrive({ refs: [refOf(0)] });
    for (let i = 1; i < 1000; i += 1) trial.arrive({ client: String(i), refs: [refOf(i)] });
    expect([...trial.store.limits()]).toHaveLength(10);
    expect(trial.store.findLimit(refOf(0))?.queue.size).toBe(1);
    trial.runUntil(200);
    expect(waiting.admission).toEqual({ kind: 'admitted' });
  });
});

describe('permission to begin a retry', () => {
  const RETRY = { reason: 'status_5xx', delay: 100, source: 'backoff', usesBudget: true, memory: 0 } as const;

  test('is given while the budget lasts', () => {
    const world = new World({ upstream: { budget: { ratio: 0.2, burst: 2 } } });
    const { ticket } = world.arrive();
    const reserve = (charged = true) =>
      world.gate.retries.reserve(ticket, { ...RETRY, usesBudget: charged }, 10_000, 0);
    expect([reserve(), reserve(), reserve()]).toEqual([undefined, undefined, 'budget_exhausted']);
    expect(reserve(false)).toBeUndefined();
    world.gate.retries.cancel(ticket, { ...RETRY, usesBudget: false });
    expect(reserve()).toBe('budget_exhausted');
    world.gate.retries.cancel(ticket, RETRY);
    expect(reserve()).toBeUndefined();
  });

  test('is denied past the deadline, at no cost in tokens', () => {
    const world = new World();
    const { ticket } = world.arrive();
    expect(world.gate.retries.reserve(ticket, RETRY, 1100, 1000)).toBe('deadline');
    expect(world.gate.retries.reserve(ticket, RETRY, 1101, 1000)).toBeUndefined();
    expect(world.store.upstream('up').retryBudget.left).toBe(0.9);
  });

  test('is denied if the gate could not admit it in time after its delay', () => {
    const world = new World({ upstream: limitedTo(10) });
    const { ticket } = world.arrive();
    for (let i = 0; i < 5; i += 1) world.arrive();
    // Six turns come before it: 100 ms and five turns.
    expect(world.gate.retries.reserve(ticket, RETRY, 600, 0)).toBe('deadline');
    expect(world.gate.retries.reserve(ticket, RETRY, 601, 0)).toBeUndefined();
  });

  test('is denied if it would have to wait beyond the maximum', () => {
    const world = new World({ upstream: { ...limitedTo(10), queue: { maxWait: 300, maxDepth: 100 } } });
    const { ticket } = world.arrive();
    for (let i = 0; i < 4; i += 1) world.arrive({ client: `${i}` });
    expect(world.gate.retries.reserve(ticket, { ...RETRY, delay: 10 }, 60_000, 0)).toBe('deadline'); // 90 + 400 − 10
    expect(world.gate.retries.reserve(ticket, { ...RETRY, delay: 500 }, 60_000, 0)).toBeUndefined();
    expect(world.gate.retries.reserve(ticket, { ...RETRY, delay: 99 }, 60_000, 0)).toBe('deadline');
    expect(world.gate.retries.reserve(ticket, { ...RETRY, delay: 100 }, 60_000, 0)).toBeUndefined(); // waits 300
  });

  test('is denied until the hold of the upstream on its client ends', () => {
    const world = new World();
    const { ticket } = world.arrive();
    world.store.clients.hold(ticket.clientSlot!, 101, 0);
    expect(world.gate.retries.reserve(ticket, RETRY, 10_000, 0)).toBe('deadline');
    expect(world.gate.retries.reserve(ticket, { ...RETRY, delay: 101 }, 10_000, 0)).toBeUndefined();
  });

  test('does not wait for the exhausted quota of another credential', () => {
    const world = new World();
    const { ticket } = world.arrive({ client: 'a', credential: 'a' });
    const other = world.arrive({ client: 'b', credential: 'b' });
    world.serve(other, response(200, { quota: { remaining: 0, limit: 100, resetIn: 60_000, window: 60_000 } }));
    expect(world.limit.meter.delay(0)).toBeGreaterThan(10_000);
    expect(world.gate.retries.reserve(ticket, RETRY, 10_000, 0)).toBeUndefined();
  });

  test('is denied after the exchange has ended', () => {
    const world = new World();
    const arrived = world.arrive();
    world.serve(arrived);
    expect(world.gate.retries.reserve(arrived.ticket, RETRY, 10_000, 0)).toBe('deadline');
    expect(world.store.upstream('up').retryBudget.left).toBe(1);
  });
});
