import type { UpstreamSettings } from '../../../src/store/upstream-state.ts';
import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { Quota } from '../../../src/core/hints/hints.ts';
import { collectLearnedLimits } from '../../../src/store/persistence/learned-state.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { Arrival, QueuedTicket } from '../../support/core/call-record.ts';
import { response, SHARED } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const ADMITTED = { kind: 'admitted' };
const HOUR = 3_600_000;
const OPEN = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };

const held = (retryAfterMs: number) => ({ kind: 'refused', why: 'held', retryAfterMs });
const blocked = (retryAfterMs: number) => ({ kind: 'refused', why: 'blocked', retryAfterMs });

const ANONYMOUS: Arrival = { client: 'a' };
const TOKEN: Arrival = { client: 'b', credential: 'Bearer b' };

function quotaOf(remaining: number, limit = 60, resetIn = 300_000): Quota {
  return { remaining, limit, resetIn, window: HOUR };
}

function worldOf(upstream: Partial<UpstreamSettings> = {}): World {
  return new World({ upstream, random: () => 0.5 });
}

/** Arrives, is sent, and gets a response at once. */
function ask(world: World, arrival: Arrival, quota: Quota | undefined, status = 200): QueuedTicket {
  const request = world.arrive(arrival);
  expect(request.admission).toEqual(ADMITTED);
  world.serve(request, response(status, { quota }));
  return request;
}

describe('a spent quota of a request without a credential', () => {
  test.each([200, 401, 403, 404, 500])('holds its client alone, after a %i', (status) => {
    const world = worldOf();
    ask(world, ANONYMOUS, quotaOf(0), status);
    for (let i = 0; i < 3; i += 1) ask(world, TOKEN, quotaOf(4999 - i, 5000));
    expect(world.arrive(ANONYMOUS).admission).toEqual(held(300_000));
    world.now = 299_999;
    expect(world.arrive(ANONYMOUS).admission).toEqual(held(1000));
    world.now = 300_000;
    expect(world.arrive(ANONYMOUS).admission).toEqual(ADMITTED);
  });

  test.each([200, 403, 404])('holds its client alone even if others had responses before, after a %i', (status) => {
    const world = worldOf();
    ask(world, TOKEN, quotaOf(4999, 5000));
    ask(world, ANONYMOUS, quotaOf(0), status);
    ask(world, TOKEN, quotaOf(4998, 5000));
    expect(world.arrive(ANONYMOUS).admission).toEqual(held(300_000));
  });

  test('does not hold a waiting request with another credential', () => {
    const world = worldOf({ rate: { ...OPEN, initialRate: 1, maxRate: 1 } });
    const anonymous = world.arrive(ANONYMOUS);
    world.send(anonymous);
    const waiting = world.arrive(TOKEN);
    expect(waiting.admission).toBeUndefined();
    world.answer(anonymous, response(404, { quota: quotaOf(0) }));
    world.runUntil(1000);
    expect([waiting.admission, waiting.at]).toEqual([ADMITTED, 1000]);
  });

  test('refuses the queued requests of its client once another request of it arrives', () => {
    const world = worldOf({ queue: { maxWait: 400_000, maxDepth: 100 } });
    ask(world, ANONYMOUS, quotaOf(0));
    const waiting = world.arrive({ ...ANONYMOUS, deadline: 500_000 });
    expect(waiting.admission).toBeUndefined();
    expect(world.arrive(TOKEN).admission).toEqual(ADMITTED);
    expect(waiting.admission).toEqual(held(300_000));
  });

  test('denies no retry to another client', () => {
    const world = worldOf();
    const request = world.arrive(TOKEN);
    world.send(request);
    ask(world, ANONYMOUS, quotaOf(0));
    world.answer(request, response(503));
    expect(
      world.gate.retries.reserve(request.ticket, { delay: 100, usesBudget: false }, 5000, world.now),
    ).toBeUndefined();
  });

  test('holds no client while quota is left: requests of others are not part of its quota', () => {
    const world = worldOf();
    const anonymous = world.arrive(ANONYMOUS);
    world.send(anonymous);
    for (let i = 0; i < 20; i += 1) world.send(world.arrive(TOKEN));
    world.answer(anonymous, response(200, { quota: quotaOf(10) }));
    expect(world.arrive(TOKEN).admission).toEqual(ADMITTED);
    expect(world.arrive(ANONYMOUS).admission).toEqual(ADMITTED);
  });

  test('does not hold the same address with another credential', () => {
    const world = worldOf();
    ask(world, { client: 'nat' }, quotaOf(0));
    ask(world, { client: 'nat', credential: 'Bearer b' }, quotaOf(4999, 5000));
    expect(world.arrive({ client: 'nat' }).admission).toEqual(held(300_000));
    ask(world, { client: 'nat', credential: 'Bearer b' }, quotaOf(4998, 5000));
  });

  test('holds the address with every credential once eight credentials have exhausted it, as they may be invented', () => {
    const world = worldOf();
    for (let i = 0; i < 8; i += 1) ask(world, { client: 'x', credential: `made up ${i}` }, quotaOf(0));
    expect(world.arrive({ client: 'x', credential: 'another' }).admission).toEqual(held(300_000));
    expect(world.arrive({ client: 'y', credential: 'another' }).admission).toEqual(ADMITTED);
  });
});

describe('a quota that runs low', () => {
  test('paces no client other than its own', () => {
    const world = worldOf();
    ask(world, ANONYMOUS, quotaOf(10));
    expect(world.limit.meter.rate(0)).toBe(10 / 300);
    for (let i = 0; i < 20; i += 1) ask(world, TOKEN, quotaOf(4999 - i, 5000));
    expect(world.limit.meter.rate(0)).toBe(Number.POSITIVE_INFINITY);
    ask(world, ANONYMOUS, quotaOf(9));
    for (let i = 0; i < 20; i += 1) ask(world, TOKEN, quotaOf(4979 - i, 5000));
  });
});

describe('if all requests have the same credential', () => {
  test.each(['', 'Bearer shared'])('a spent quota stops all clients that received it, with %j', (credential) => {
    const world = worldOf();
    ask(world, { client: 'a', credential }, quotaOf(1));
    ask(world, { client: 'b', credential }, quotaOf(0));
    for (const client of ['a', 'b', 'c']) {
      expect(world.arrive({ client, credential }).admission).toEqual(blocked(300_000));
    }
  });

  test('a quota that runs low paces all clients that received it', () => {
    const world = worldOf();
    ask(world, { client: 'a' }, quotaOf(11));
    ask(world, { client: 'b' }, quotaOf(10));
    expect(world.arrive({ client: 'c' }).admission).toMatchObject({ kind: 'refused', why: 'over_share' });
    expect(world.limit.meter.rate(0)).toBe(10 / 300);
  });

  test('a client without a response receives the quota itself first, and then all clients are stopped', () => {
    const world = worldOf();
    ask(world, { client: 'a' }, quotaOf(0));
    ask(world, { client: 'b' }, quotaOf(0));
    expect(world.arrive({ client: 'a' }).admission).toEqual(held(300_000));
    for (const client of ['b', 'c']) expect(world.arrive({ client }).admission).toEqual(blocked(300_000));
  });

  test('a single client is stopped and paced as its limit is', () => {
    const world = worldOf();
    ask(world, { client: 'a' }, quotaOf(10));
    expect(world.limit.meter.rate(0)).toBe(10 / 300);
    world.now = 60_000;
    ask(world, { client: 'a' }, quotaOf(0));
    expect(world.limit.isBlocked(60_000)).toBe(true);
    expect(world.arrive({ client: 'a' }).admission).toEqual(blocked(300_000));
  });

  test.each([401, 407])('a %i holds its client alone, because the request was not authenticated', (status) => {
    const world = worldOf();
    for (const client of ['a', 'b']) ask(world, { client }, quotaOf(50));
    ask(world, { client: 'a' }, quotaOf(0), status);
    expect(world.arrive({ client: 'a' }).admission).toEqual(held(300_000));
    expect(world.arrive({ client: 'b' }).admission).toEqual(ADMITTED);
  });

  test('and clients receive different limits in turn, each client is held by its own', () => {
    const world = worldOf();
    ask(world, { client: 'a' }, quotaOf(59));
    world.now = 1;
    ask(world, { client: 'b' }, quotaOf(4999, 5000));
    world.now = 2;
    ask(world, { client: 'a' }, quotaOf(0));
    for (const client of ['b', 'c']) expect(world.arrive({ client }).admission).toEqual(ADMITTED);
    expect(world.arrive({ client: 'a' }).admission).toEqual(held(300_000));
    ask(world, { client: 'b' }, quotaOf(10, 5000));
    expect(world.limit.meter.rate(2)).toBe(Number.POSITIVE_INFINITY);
  });

  test('and one client receives two limits in turn, the client is held by both', () => {
    const world = worldOf();
    for (const limit of [60, 5000, 60]) ask(world, { client: 'a' }, quotaOf(limit - 1, limit));
    ask(world, { client: 'a' }, quotaOf(0, 5000));
    expect(world.arrive({ client: 'a' }).admission).toEqual(blocked(300_000));
  });
});

describe('quotas that were found to be separate', () => {
  test('are treated as shared again ten minutes after the last evidence of separation', () => {
    const world = worldOf();
    ask(world, ANONYMOUS, quotaOf(59));
    ask(world, TOKEN, quotaOf(4999, 5000));
    world.now = 599_999;
    ask(world, TOKEN, quotaOf(2500, 5000));
    expect(world.limit.meter.rate(world.now)).toBe(Number.POSITIVE_INFINITY);
    world.now = 600_000;
    ask(world, TOKEN, quotaOf(2500, 5000));
    expect(world.limit.meter.rate(world.now)).toBeLessThan(Number.POSITIVE_INFINITY);
  });
});

describe('a spent quota received by another process', () => {
  const restored = (): World => {
    const earlier = worldOf();
    ask(earlier, ANONYMOUS, quotaOf(0));
    const limits = collectLearnedLimits(earlier.gate.view(0).limits, () => undefined, 10, 0);
    const world = worldOf();
    if (world.store instanceof MemoryStore) world.store.restore({ limits, holds: [] }, 0);
    return world;
  };

  test('stops its clients after a restart', () => {
    const world = restored();
    expect(world.arrive(ANONYMOUS).admission).toEqual(blocked(300_000));
    expect(world.arrive({ ...ANONYMOUS, refs: [SHARED] }).admission).toEqual(blocked(300_000));
  });

  test('stops no other clients after a restart', () => {
    const world = restored();
    expect(world.arrive(TOKEN).admission).toEqual(ADMITTED);
    expect(world.arrive(ANONYMOUS).admission).toEqual(held(300_000));
  });
});

describe('if the upstream counts', () => {
  const own = (scope: 'client' | 'credential', key: string): readonly LimitRef[] => [
    { upstream: 'up', nested: '', scope, key },
  ];

  test('by credential, an exhausted quota stops all clients with it, and no other, from the first response on', () => {
    const world = worldOf({ scope: 'credential' });
    const [none, token] = [own('credential', 'none'), own('credential', 'token')];
    ask(world, { client: 'a', refs: none }, quotaOf(0), 403);
    ask(world, { client: 'b', refs: token }, quotaOf(4999, 5000));
    for (const client of ['a', 'c']) {
      expect(world.arrive({ client, refs: none }).admission).toEqual({ ...held(300_000) });
    }
    ask(world, { client: 'a', refs: token }, quotaOf(4998, 5000));
  });

  test('by client, an exhausted quota stops one client, with the credential of the response', () => {
    const world = worldOf({ scope: 'client' });
    const refs = own('client', 'a');
    ask(world, { client: 'a', refs }, quotaOf(0));
    expect(world.arrive({ client: 'a', refs }).admission).toEqual(held(300_000));
    ask(world, { client: 'a', refs, credential: 'Bearer a' }, quotaOf(4999, 5000));
    expect(world.arrive({ client: 'a', refs }).admission).toEqual(held(300_000));
    expect(world.arrive({ client: 'b', refs: own('client', 'b') }).admission).toEqual(ADMITTED);
  });
});

test('an exhausted quota at a nested limit holds its client at that limit alone', () => {
  const world = worldOf({ nested: [{ name: 'search', scope: 'upstream', isKeyed: false, rate: OPEN }] });
  const search: LimitRef = { upstream: 'up', nested: 'search', scope: 'upstream', key: '' };
  const refs = [SHARED, search];
  ask(world, { ...ANONYMOUS, refs }, quotaOf(0));
  ask(world, { ...TOKEN, refs }, quotaOf(29, 30));
  expect(world.arrive({ ...ANONYMOUS, refs }).admission).toEqual(held(300_000));
  expect(world.arrive(ANONYMOUS).admission).toEqual(ADMITTED);
});
