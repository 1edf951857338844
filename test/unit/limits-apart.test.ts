/** Limits that requests stand under in different combinations: who is blamed, who waits where, and who goes first. */
import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { ofClass } from '../../src/core/limits/limit-ref.ts';
import type { PerSecond } from '../../src/core/exchange/attempt-outcome.ts';
import type { NestedSettings } from '../../src/store/upstream-nested-limits.ts';
import type { Standing } from '../support/policy.ts';
import { failure, limitedTo, response, SHARED, World } from '../support/policy.ts';

const OPEN = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };
const known = (rate: PerSecond) => ({ initialRate: rate, maxRate: rate, minRate: Math.min(0.1, rate), cooldown: 1000 });

const endpoint = (key: string): LimitRef => ({ upstream: 'up', nested: 'endpoint', scope: 'upstream', key });
const A = endpoint('a');
const B = endpoint('b');
const BATCH: LimitRef = { upstream: 'up', nested: ofClass('batch'), scope: 'upstream', key: '' };
const TENANT: LimitRef = { upstream: 'up', nested: 'tenant', scope: 'client', key: 'c' };

const keyed = (rate: NestedSettings['rate']): NestedSettings => ({
  name: 'endpoint',
  scope: 'upstream',
  isKeyed: true,
  rate,
});
const batch = (rate: PerSecond): NestedSettings => ({
  name: BATCH.nested,
  scope: 'upstream',
  isKeyed: false,
  rate: known(rate),
});

function worldOf(outer: PerSecond | undefined, nested: readonly NestedSettings[]): World {
  return new World({ upstream: { ...(outer === undefined ? {} : limitedTo(outer)), nested }, random: () => 0.5 });
}

const limitOf = (world: World, ref: LimitRef) => world.store.find(ref)!;
const phaseOf = (world: World, ref: LimitRef) => limitOf(world, ref).meter.phase;
const times = (standings: readonly Standing[]) =>
  standings.map(({ told, at }) => (told?.kind === 'admitted' ? Math.round(at) : told?.kind));

describe('a 429', () => {
  const felt = () => worldOf(undefined, [keyed(OPEN)]);

  test('that names several is about the innermost of them, and about nobody where none of them is stood under', () => {
    const world = felt();
    const named = { limit: ['other', 'endpoint'] };
    world.serve(world.arrive({ refs: [SHARED, A] }), response(429, named));
    expect([phaseOf(world, A), phaseOf(world, SHARED)]).toEqual(['backoff', 'open']);
    world.serve(world.arrive({ refs: [SHARED] }), response(429, named));
    expect(phaseOf(world, SHARED)).toBe('open');
  });

  test('is held against the limit that it names, and is an answer to the others', () => {
    const world = felt();
    world.serve(world.arrive({ refs: [SHARED, A] }), response(429, { limit: 'endpoint' }));
    expect([SHARED, A, B].map((ref) => phaseOf(world, ref))).toEqual(['open', 'backoff', 'open']);
    world.serve(world.arrive({ refs: [SHARED, B] }), response(429, { limit: '' }));
    expect([SHARED, A, B].map((ref) => phaseOf(world, ref))).toEqual(['backoff', 'backoff', 'open']);
  });

  test('goes to the innermost where it names none, or one that the upstream has not', () => {
    for (const hints of [{}, { limit: 'unheard-of' }]) {
      const world = felt();
      const standing = world.arrive({ refs: [SHARED, A] });
      world.serve(standing, response(429, hints));
      expect([SHARED, A].map((ref) => phaseOf(world, ref))).toEqual(['open', 'backoff']);
      expect(standing.ticket.blamed).toBe(limitOf(world, A));
    }
  });

  test('for a limit that this request does not stand under cuts nothing: its path was told wrong', () => {
    const world = felt();
    const standing = world.arrive({ refs: [SHARED] });
    world.serve(standing, response(429, { limit: 'endpoint', retryAfter: 5000 }));
    expect(phaseOf(world, SHARED)).toBe('open');
    expect(standing.ticket.blamed).toBeUndefined();
    expect(world.ofType('cut')).toEqual([]);
    expect(world.arrive({ refs: [SHARED] }).told).toEqual({ kind: 'admitted' });
  });

  test('about one object cuts nothing anywhere', () => {
    const world = felt();
    world.serve(world.arrive({ refs: [SHARED, A] }), response(429, { lock: true, limit: 'endpoint' }));
    expect([SHARED, A].map((ref) => phaseOf(world, ref))).toEqual(['open', 'open']);
  });

  test('may be of another status, where its preset says so', () => {
    const world = felt();
    world.serve(world.arrive({ refs: [SHARED, A] }), response(503, { throttled: true, limit: '' }));
    expect([SHARED, A].map((ref) => phaseOf(world, ref))).toEqual(['backoff', 'open']);
  });

  test('is never held against the limit of a class: that is ours', () => {
    const world = worldOf(undefined, [batch(20)]);
    for (let i = 0; i < 10; i += 1) {
      const standing = world.arrive({ refs: [SHARED, BATCH] });
      world.send(standing);
      world.answer(standing, i < 5 ? response(429, { limit: BATCH.nested }) : failure('connect', false));
      world.now += 60;
    }
    expect(phaseOf(world, SHARED)).not.toBe('open');
    expect(phaseOf(world, BATCH)).toBe('restoring');
    expect(limitOf(world, BATCH).meter.rate(world.now)).toBe(20);
  });
});

describe('a Retry-After', () => {
  test('of an endpoint holds who asked there, and nowhere else', () => {
    const world = worldOf(undefined, [keyed(known(100))]);
    world.serve(
      world.arrive({ client: 'x', refs: [SHARED, A] }),
      response(429, { retryAfter: 3000, limit: 'endpoint' }),
    );
    world.now += 100;
    expect(world.arrive({ client: 'x', refs: [SHARED, A] }).told).toMatchObject({ kind: 'refused', why: 'held' });
    expect(world.arrive({ client: 'x', refs: [SHARED, B] }).told).toEqual({ kind: 'admitted' });
    expect(world.arrive({ client: 'y', refs: [SHARED, A] }).told).toEqual({ kind: 'admitted' });
    world.now += 3000;
    expect(world.arrive({ client: 'x', refs: [SHARED, A] }).told).toEqual({ kind: 'admitted' });
  });

  test('of the account holds who asked, wherever', () => {
    const world = worldOf(undefined, [keyed(OPEN)]);
    world.serve(world.arrive({ client: 'x', refs: [SHARED, A] }), response(429, { retryAfter: 3000, limit: '' }));
    world.now += 100;
    expect(world.arrive({ client: 'x', refs: [SHARED, B] }).told).toMatchObject({ kind: 'refused', why: 'held' });
  });

  test('of a limit that its client has alone stops that limit', () => {
    const world = worldOf(undefined, [{ name: 'tenant', scope: 'client', isKeyed: false, rate: OPEN }]);
    world.serve(world.arrive({ client: 'c', refs: [SHARED, TENANT] }), response(429, { retryAfter: 3000 }));
    world.now += 100;
    expect(world.arrive({ client: 'c', refs: [SHARED, TENANT] }).told).toMatchObject({ kind: 'refused', why: 'held' });
    expect(world.arrive({ client: 'c', refs: [SHARED] }).told).toEqual({ kind: 'admitted' });
  });

  test('a write that waits there when it comes is not sent earlier', () => {
    const world = worldOf(undefined, [keyed(known(10))]);
    const out = world.arrive({ client: 'x', refs: [SHARED, A] });
    world.send(out);
    const waiting = world.arrive({ client: 'x', refs: [SHARED, A] });
    expect(waiting.told).toBeUndefined();
    world.answer(out, response(429, { retryAfter: 2000 }));
    world.runUntil(1500);
    expect(waiting.told).toMatchObject({ kind: 'refused', why: 'held' });
  });
});

describe('a quota', () => {
  test('is of the limit that the answer names, else of the innermost', () => {
    const spent = { remaining: 0, limit: 100, resetIn: 5000, window: undefined };
    const world = worldOf(undefined, [keyed(OPEN)]);
    world.serve(world.arrive({ refs: [SHARED, A] }), response(200, { quota: spent }));
    expect([SHARED, A].map((ref) => limitOf(world, ref).isBlocked(world.now))).toEqual([false, true]);
    world.serve(world.arrive({ refs: [SHARED, B] }), response(200, { quota: spent, limit: '' }));
    expect([SHARED, B].map((ref) => limitOf(world, ref).isBlocked(world.now))).toEqual([true, false]);
  });
});

describe('who waits', () => {
  test('for the limit of its class lets those of other classes go first', () => {
    const world = worldOf(undefined, [batch(2), keyed(known(20))]);
    world.arrive({ client: 'slow', refs: [SHARED, BATCH, A] });
    const slow = [1, 2].map(() => world.arrive({ client: 'slow', refs: [SHARED, BATCH, A] }));
    const quick = Array.from({ length: 4 }, () => world.arrive({ client: 'quick', refs: [SHARED, A] }));
    world.runUntil(1200);
    expect(times(quick)).toEqual([50, 100, 150, 200]);
    expect(times(slow)[0]).toBe(500);
  });

  test('at an endpoint that is spent leaves the account to the others', () => {
    const world = worldOf(100, [keyed(known(5))]);
    Array.from({ length: 6 }, (_, i) => world.arrive({ client: `flood-${i}`, refs: [SHARED, A] }));
    world.now = 20;
    world.gate.wake(20);
    const others = Array.from({ length: 3 }, () => world.arrive({ client: 'other', refs: [SHARED, B] }));
    expect(others[0]!.told).toEqual({ kind: 'admitted' });
    expect(others.slice(1).map(({ told }) => told)).toEqual([undefined, undefined]);
    world.runUntil(500);
    expect(times(others)).toEqual([20, 220, 420]);
  });

  test('in two lines for one account takes turns by client, whatever the lines', () => {
    const world = worldOf(10, [keyed(OPEN)]);
    world.arrive({ client: 'first', refs: [SHARED, B] });
    // One client asks at nine endpoints, the other at one.
    const many = Array.from({ length: 9 }, (_, i) =>
      world.arrive({ client: 'many', refs: [SHARED, endpoint(`x${i}`)] }),
    );
    const one = Array.from({ length: 4 }, () => world.arrive({ client: 'one', refs: [SHARED, A] }));
    world.runUntil(850);
    const served = (standings: readonly Standing[]) => standings.filter(({ told }) => told?.kind === 'admitted').length;
    expect([served(many), served(one)]).toEqual([4, 4]);
  });

  test('comes behind those who wait already, though its own line is empty', () => {
    const world = worldOf(10, [keyed(OPEN)]);
    world.arrive({ client: 'a', refs: [SHARED, A] });
    const waiting = world.arrive({ client: 'a', refs: [SHARED, A] });
    world.now = 100; // its token is there, and the timer is late
    const late = world.arrive({ client: 'b', refs: [SHARED, B] });
    expect([waiting.told, late.told]).toEqual([undefined, undefined]);
    world.runUntil(250);
    expect(times([waiting, late])).toEqual([100, 200]);
  });
});

describe('limits that are made when they are first met', () => {
  test('are as many as a bound says, and made-up ones push out no other that has learned', () => {
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
