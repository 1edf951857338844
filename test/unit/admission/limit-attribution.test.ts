/** Requests under limits in different combinations: attribution, queues and order. */
import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { classLimitName } from '../../../src/core/limits/limit-ref.ts';
import type { PerSecond } from '../../../src/core/scalars.ts';
import type { NestedLimitSettings } from '../../../src/store/upstream-nested-limits.ts';
import type { QueuedTicket } from '../../support/core/call-record.ts';
import { failure, limitedTo, response, SHARED } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const OPEN = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };
const known = (rate: PerSecond) => ({ initialRate: rate, maxRate: rate, minRate: Math.min(0.1, rate), cooldown: 1000 });

const endpoint = (key: string): LimitRef => ({ upstream: 'up', nested: 'endpoint', scope: 'upstream', key });
const A = endpoint('a');
const B = endpoint('b');
const BATCH: LimitRef = { upstream: 'up', nested: classLimitName('batch'), scope: 'upstream', key: '' };
const TENANT: LimitRef = { upstream: 'up', nested: 'tenant', scope: 'client', key: 'c' };

const keyed = (rate: NestedLimitSettings['rate']): NestedLimitSettings => ({
  name: 'endpoint',
  scope: 'upstream',
  isKeyed: true,
  rate,
});
const batch = (rate: PerSecond): NestedLimitSettings => ({
  name: BATCH.nested,
  scope: 'upstream',
  isKeyed: false,
  rate: known(rate),
});

function worldOf(outer: PerSecond | undefined, nested: readonly NestedLimitSettings[]): World {
  return new World({ upstream: { ...(outer === undefined ? {} : limitedTo(outer)), nested }, random: () => 0.5 });
}

const limitOf = (world: World, ref: LimitRef) => world.store.findLimit(ref)!;
const phaseOf = (world: World, ref: LimitRef) => limitOf(world, ref).meter.phase;
const times = (requests: readonly QueuedTicket[]) =>
  requests.map(({ admission, at }) => (admission?.kind === 'admitted' ? Math.round(at) : admission?.kind));

describe('a 429', () => {
  const openWorld = () => worldOf(undefined, [keyed(OPEN)]);

  test('that names several limits cuts the innermost of them, and none if the request belongs to none', () => {
    const world = openWorld();
    const named = { limit: ['other', 'endpoint'] };
    world.serve(world.arrive({ refs: [SHARED, A] }), response(429, named));
    expect([phaseOf(world, A), phaseOf(world, SHARED)]).toEqual(['backoff', 'open']);
    world.serve(world.arrive({ refs: [SHARED] }), response(429, named));
    expect(phaseOf(world, SHARED)).toBe('open');
  });

  test('cuts the limit that it names, and counts as accepted for the others', () => {
    const world = openWorld();
    world.serve(world.arrive({ refs: [SHARED, A] }), response(429, { limit: 'endpoint' }));
    expect([SHARED, A, B].map((ref) => phaseOf(world, ref))).toEqual(['open', 'backoff', 'open']);
    world.serve(world.arrive({ refs: [SHARED, B] }), response(429, { limit: '' }));
    expect([SHARED, A, B].map((ref) => phaseOf(world, ref))).toEqual(['backoff', 'backoff', 'open']);
  });

  test('cuts the innermost limit if it names none, or an unknown one', () => {
    for (const hints of [{}, { limit: 'unknown-limit' }]) {
      const world = openWorld();
      const attributedLimit = world.serve(world.arrive({ refs: [SHARED, A] }), response(429, hints));
      expect([SHARED, A].map((ref) => phaseOf(world, ref))).toEqual(['open', 'backoff']);
      expect(attributedLimit).toBe(limitOf(world, A));
    }
  });

  test('for a limit that this request does not belong to cuts nothing: the path pattern is wrong', () => {
    const world = openWorld();
    const hints = { limit: 'endpoint', retryAfterMs: 5000 };
    const attributedLimit = world.serve(world.arrive({ refs: [SHARED] }), response(429, hints));
    expect(phaseOf(world, SHARED)).toBe('open');
    expect(attributedLimit).toBeUndefined();
    expect(world.ofType('cut')).toEqual([]);
    expect(world.arrive({ refs: [SHARED] }).admission).toEqual({ kind: 'admitted' });
  });

  test('about one object cuts nothing', () => {
    const world = openWorld();
    world.serve(world.arrive({ refs: [SHARED, A] }), response(429, { lock: true, limit: 'endpoint' }));
    expect([SHARED, A].map((ref) => phaseOf(world, ref))).toEqual(['open', 'open']);
  });

  test('may have another status, if the preset says so', () => {
    const world = openWorld();
    world.serve(world.arrive({ refs: [SHARED, A] }), response(503, { throttled: true, limit: '' }));
    expect([SHARED, A].map((ref) => phaseOf(world, ref))).toEqual(['backoff', 'open']);
  });

  test('never cuts the limit of a class, which is configured', () => {
    const world = worldOf(undefined, [batch(20)]);
    for (let i = 0; i < 10; i += 1) {
      const request = world.arrive({ refs: [SHARED, BATCH] });
      world.send(request);
      world.answer(request, i < 5 ? response(429, { limit: BATCH.nested }) : failure('connect', false));
      world.now += 60;
    }
    expect(phaseOf(world, SHARED)).not.toBe('open');
    expect(phaseOf(world, BATCH)).toBe('restoring');
    expect(limitOf(world, BATCH).meter.rate(world.now)).toBe(20);
  });
});

describe('a Retry-After', () => {
  test('of an endpoint holds the client there, and nowhere else', () => {
    const world = worldOf(undefined, [keyed(known(100))]);
    world.serve(
      world.arrive({ client: 'x', refs: [SHARED, A] }),
      response(429, { retryAfterMs: 3000, limit: 'endpoint' }),
    );
    world.now += 100;
    expect(world.arrive({ client: 'x', refs: [SHARED, A] }).admission).toMatchObject({ kind: 'refused', why: 'held' });
    expect(world.arrive({ client: 'x', refs: [SHARED, B] }).admission).toEqual({ kind: 'admitted' });
    expect(world.arrive({ client: 'y', refs: [SHARED, A] }).admission).toEqual({ kind: 'admitted' });
    world.now += 3000;
    expect(world.arrive({ client: 'x', refs: [SHARED, A] }).admission).toEqual({ kind: 'admitted' });
  });

  test('of the account holds the client everywhere', () => {
    const world = worldOf(undefined, [keyed(OPEN)]);
    world.serve(world.arrive({ client: 'x', refs: [SHARED, A] }), response(429, { retryAfterMs: 3000, limit: '' }));
    world.now += 100;
    expect(world.arrive({ client: 'x', refs: [SHARED, B] }).admission).toMatchObject({ kind: 'refused', why: 'held' });
  });

  test('of a limit that belongs to its client alone stops that limit', () => {
    const world = worldOf(undefined, [{ name: 'tenant', scope: 'client', isKeyed: false, rate: OPEN }]);
    world.serve(world.arrive({ client: 'c', refs: [SHARED, TENANT] }), response(429, { retryAfterMs: 3000 }));
    world.now += 100;
    expect(world.arrive({ client: 'c', refs: [SHARED, TENANT] }).admission).toMatchObject({
      kind: 'refused',
      why: 'held',
    });
    expect(world.arrive({ client: 'c', refs: [SHARED] }).admission).toEqual({ kind: 'admitted' });
  });

  test('delays a write that is waiting when the Retry-After arrives', () => {
    const world = worldOf(undefined, [keyed(known(10))]);
    const out = world.arrive({ client: 'x', refs: [SHARED, A] });
    world.send(out);
    const waiting = world.arrive({ client: 'x', refs: [SHARED, A] });
    expect(waiting.admission).toBeUndefined();
    world.answer(out, response(429, { retryAfterMs: 2000 }));
    world.runUntil(1500);
    expect(waiting.admission).toMatchObject({ kind: 'refused', why: 'held' });
  });
});

describe('a quota', () => {
  test('applies to the limit that the response names, or else to the innermost', () => {
    const spent = { remaining: 0, limit: 100, resetIn: 5000, window: undefined };
    const world = worldOf(undefined, [keyed(OPEN)]);
    world.serve(world.arrive({ refs: [SHARED, A] }), response(200, { quota: spent }));
    expect([SHARED, A].map((ref) => limitOf(world, ref).isBlocked(world.now))).toEqual([false, true]);
    world.serve(world.arrive({ refs: [SHARED, B] }), response(200, { quota: spent, limit: '' }));
    expect([SHARED, B].map((ref) => limitOf(world, ref).isBlocked(world.now))).toEqual([true, false]);
  });
});

describe('a response that names a limit that is not configured', () => {
  const spent = { remaining: 0, limit: 1750, resetIn: 5000, window: undefined };
  const world = () => worldOf(100, [keyed(known(25))]);
  const isFree = (each: World, ref: LimitRef) => {
    each.now += 100;
    return each.arrive({ refs: [SHARED, ref] }).admission?.kind === 'admitted';
  };

  test('reports a quota that holds no request', () => {
    const each = world();
    each.serve(each.arrive({ refs: [SHARED, A] }), response(200, { quota: spent, quotaLimit: [] }));
    expect([isFree(each, A), isFree(each, B)]).toEqual([true, true]);
    expect([SHARED, A].map((ref) => limitOf(each, ref).meter.quotaLeft)).toEqual([undefined, undefined]);
  });

  test.each([403, 429])('that rejects with a %i cuts no rate and holds no request', (status) => {
    const each = world();
    const hints = { quota: spent, throttled: true, retryAfterMs: 60_000, limit: [], quotaLimit: [] };
    expect(each.serve(each.arrive({ refs: [SHARED, A] }), response(status, hints))).toBeUndefined();
    expect([isFree(each, A), isFree(each, B), each.ofType('cut')]).toEqual([true, true, []]);
  });

  test('that rejects with some of the quota left cuts the innermost limit', () => {
    const each = world();
    const quota = { ...spent, remaining: 700 };
    const limit = each.serve(each.arrive({ refs: [SHARED, A] }), response(429, { quota, quotaLimit: [] }));
    expect(limit).toBe(limitOf(each, A));
    expect(limit?.meter.quotaLeft).toBeUndefined();
  });

  test('has a quota of another limit than the one that a rule names for the rejection', () => {
    const each = world();
    each.serve(each.arrive({ refs: [SHARED, A] }), response(429, { quota: spent, limit: 'endpoint', quotaLimit: '' }));
    expect([SHARED, A].map((ref) => limitOf(each, ref).meter.quotaLeft)).toEqual([0, undefined]);
  });
});

describe('a waiting request', () => {
  test('for the limit of its class yields to requests of other classes', () => {
    const world = worldOf(undefined, [batch(2), keyed(known(20))]);
    world.arrive({ client: 'slow', refs: [SHARED, BATCH, A] });
    const slow = [1, 2].map(() => world.arrive({ client: 'slow', refs: [SHARED, BATCH, A] }));
    const quick = Array.from({ length: 4 }, () => world.arrive({ client: 'quick', refs: [SHARED, A] }));
    world.runUntil(1200);
    expect(times(quick)).toEqual([50, 100, 150, 200]);
    expect(times(slow)[0]).toBe(500);
  });

  test('at an exhausted endpoint leaves the rate of the account to the others', () => {
    const world = worldOf(100, [keyed(known(5))]);
    Array.from({ length: 6 }, (_, i) => world.arrive({ client: `flood-${i}`, refs: [SHARED, A] }));
    world.now = 20;
    world.gate.wake(20);
    const others = Array.from({ length: 3 }, () => world.arrive({ client: 'other', refs: [SHARED, B] }));
    expect(others[0]!.admission).toEqual({ kind: 'admitted' });
    expect(others.slice(1).map(({ admission }) => admission)).toEqual([undefined, undefined]);
    world.runUntil(500);
    expect(times(others)).toEqual([20, 220, 420]);
  });

  test('in one of two queues for one account takes turns by client, in whichever queue it waits', () => {
    const world = worldOf(10, [keyed(OPEN)]);
    world.arrive({ client: 'first', refs: [SHARED, B] });
    // One client sends to nine endpoints, the other to one.
    const many = Array.from({ length: 9 }, (_, i) =>
      world.arrive({ client: 'many', refs: [SHARED, endpoint(`x${i}`)] }),
    );
    const one = Array.from({ length: 4 }, () => world.arrive({ client: 'one', refs: [SHARED, A] }));
    world.runUntil(850);
    const served = (requests: readonly QueuedTicket[]) =>
      requests.filter(({ admission }) => admission?.kind === 'admitted').length;
    expect([served(many), served(one)]).toEqual([4, 4]);
  });

  test('goes behind the requests that wait already, though its own queue is empty', () => {
    const world = worldOf(10, [keyed(OPEN)]);
    world.arrive({ client: 'a', refs: [SHARED, A] });
    const waiting = world.arrive({ client: 'a', refs: [SHARED, A] });
    world.now = 100; // its token is due, and the timer is late
    const late = world.arrive({ client: 'b', refs: [SHARED, B] });
    expect([waiting.admission, late.admission]).toEqual([undefined, undefined]);
    world.runUntil(250);
    expect(times([waiting, late])).toEqual([100, 200]);
  });
});

describe('limits created on first use', () => {
  test('are bounded in number, and limits of invented paths do not evict one that has learned', () => {
    const world = worldOf(undefined, [keyed(OPEN)]);
    world.serve(world.arrive({ refs: [SHARED, A] }), response(429));
    for (let i = 0; i < 3000; i += 1) {
      world.now += 1;
      world.serve(world.arrive({ client: 'evil', refs: [SHARED, endpoint(`made-up-${i}`)] }), response(404));
    }
    const limits = [...world.store.limits()];
    expect(limits.length).toBeLessThanOrEqual(1001);
    expect(limits.some(({ ref }) => ref.key === 'a')).toBe(true);
  });
});
