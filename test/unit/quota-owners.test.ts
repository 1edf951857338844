/** Whom a quota holds that one client is told. */
import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import type { Quota } from '../../src/core/exchange/attempt-outcome.ts';
import { learnedOf } from '../../src/store/persistence/learned-state.ts';
import type { UpstreamSettings } from '../../src/store/memory-store.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import type { Arrival, Standing } from '../support/policy.ts';
import { response, SHARED, World } from '../support/policy.ts';

const ADMITTED = { kind: 'admitted' };
const HOUR = 3_600_000;
const OPEN = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };

const held = (retryAfter: number) => ({ kind: 'refused', why: 'held', retryAfter });
const blocked = (retryAfter: number) => ({ kind: 'refused', why: 'blocked', retryAfter });

const ANONYMOUS: Arrival = { client: 'a' };
const TOKEN: Arrival = { client: 'b', credential: 'Bearer b' };

function quotaOf(remaining: number, limit = 60, resetIn = 300_000): Quota {
  return { remaining, limit, resetIn, window: HOUR };
}

function worldOf(upstream: Partial<UpstreamSettings> = {}): World {
  return new World({ upstream, random: () => 0.5 });
}

/** Arrives, is sent and answered now. */
function ask(world: World, arrival: Arrival, quota: Quota | undefined, status = 200): Standing {
  const standing = world.arrive(arrival);
  expect(standing.told).toEqual(ADMITTED);
  world.serve(standing, response(status, { quota }));
  return standing;
}

describe('a spent quota of a request without a credential', () => {
  test.each([200, 401, 403, 404, 500])('holds its client alone, told by a %i', (status) => {
    const world = worldOf();
    ask(world, ANONYMOUS, quotaOf(0), status);
    for (let i = 0; i < 3; i += 1) ask(world, TOKEN, quotaOf(4999 - i, 5000));
    expect(world.arrive(ANONYMOUS).told).toEqual(held(300_000));
    world.now = 299_999;
    expect(world.arrive(ANONYMOUS).told).toEqual(held(1000));
    world.now = 300_000;
    expect(world.arrive(ANONYMOUS).told).toEqual(ADMITTED);
  });

  test.each([200, 403, 404])('holds its client alone where others were answered before, told by a %i', (status) => {
    const world = worldOf();
    ask(world, TOKEN, quotaOf(4999, 5000));
    ask(world, ANONYMOUS, quotaOf(0), status);
    ask(world, TOKEN, quotaOf(4998, 5000));
    expect(world.arrive(ANONYMOUS).told).toEqual(held(300_000));
  });

  test('lets who waits with another credential go on at once', () => {
    const world = worldOf({ rate: { ...OPEN, initialRate: 1, maxRate: 1 } });
    const anonymous = world.arrive(ANONYMOUS);
    world.send(anonymous);
    const waiting = world.arrive(TOKEN);
    expect(waiting.told).toBeUndefined();
    world.answer(anonymous, response(404, { quota: quotaOf(0) }));
    world.runUntil(1000);
    expect([waiting.told, waiting.at]).toEqual([ADMITTED, 1000]);
  });

  test('turns away what its client has waiting, once another arrives', () => {
    const world = worldOf({ queue: { maxWait: 400_000, maxDepth: 100 } });
    ask(world, ANONYMOUS, quotaOf(0));
    const waiting = world.arrive({ ...ANONYMOUS, deadline: 500_000 });
    expect(waiting.told).toBeUndefined();
    expect(world.arrive(TOKEN).told).toEqual(ADMITTED);
    expect(waiting.told).toEqual(held(300_000));
  });

  test('denies no retry to another', () => {
    const world = worldOf();
    const standing = world.arrive(TOKEN);
    world.send(standing);
    ask(world, ANONYMOUS, quotaOf(0));
    world.answer(standing, response(503));
    expect(world.gate.reserve(standing.ticket, { delay: 100, charged: false }, 5000, world.now)).toBeUndefined();
  });

  test('holds nobody of whom the upstream says that something is left: what others have sent is not of its quota', () => {
    const world = worldOf();
    const anonymous = world.arrive(ANONYMOUS);
    world.send(anonymous);
    for (let i = 0; i < 20; i += 1) world.send(world.arrive(TOKEN));
    world.answer(anonymous, response(200, { quota: quotaOf(10) }));
    expect(world.arrive(TOKEN).told).toEqual(ADMITTED);
    expect(world.arrive(ANONYMOUS).told).toEqual(ADMITTED);
  });

  test('holds one address with another credential not at all', () => {
    const world = worldOf();
    ask(world, { client: 'nat' }, quotaOf(0));
    ask(world, { client: 'nat', credential: 'Bearer b' }, quotaOf(4999, 5000));
    expect(world.arrive({ client: 'nat' }).told).toEqual(held(300_000));
    ask(world, { client: 'nat', credential: 'Bearer b' }, quotaOf(4998, 5000));
  });

  test('holds it with every credential once it was spent with eight: they may be made up', () => {
    const world = worldOf();
    for (let i = 0; i < 8; i += 1) ask(world, { client: 'x', credential: `made up ${i}` }, quotaOf(0));
    expect(world.arrive({ client: 'x', credential: 'another' }).told).toEqual(held(300_000));
    expect(world.arrive({ client: 'y', credential: 'another' }).told).toEqual(ADMITTED);
  });
});

describe('a quota that runs low', () => {
  test('paces nobody whom it is not about', () => {
    const world = worldOf();
    ask(world, ANONYMOUS, quotaOf(10));
    expect(world.limit.meter.rate(0)).toBe(10 / 300);
    for (let i = 0; i < 20; i += 1) ask(world, TOKEN, quotaOf(4999 - i, 5000));
    expect(world.limit.meter.rate(0)).toBe(Number.POSITIVE_INFINITY);
    ask(world, ANONYMOUS, quotaOf(9));
    for (let i = 0; i < 20; i += 1) ask(world, TOKEN, quotaOf(4979 - i, 5000));
  });
});

describe('where all requests show the same credential', () => {
  test.each(['', 'Bearer shared'])('a spent quota stops all that were told of it, shown %j', (credential) => {
    const world = worldOf();
    ask(world, { client: 'a', credential }, quotaOf(1));
    ask(world, { client: 'b', credential }, quotaOf(0));
    for (const client of ['a', 'b', 'c']) expect(world.arrive({ client, credential }).told).toEqual(blocked(300_000));
  });

  test('one that runs low paces all that were told of it', () => {
    const world = worldOf();
    ask(world, { client: 'a' }, quotaOf(11));
    ask(world, { client: 'b' }, quotaOf(10));
    expect(world.arrive({ client: 'c' }).told).toMatchObject({ kind: 'refused', why: 'over_share' });
    expect(world.limit.meter.rate(0)).toBe(10 / 300);
  });

  test('a client that was never answered finds out by itself what one was told, and then all are stopped', () => {
    const world = worldOf();
    ask(world, { client: 'a' }, quotaOf(0));
    ask(world, { client: 'b' }, quotaOf(0));
    expect(world.arrive({ client: 'a' }).told).toEqual(held(300_000));
    for (const client of ['b', 'c']) expect(world.arrive({ client }).told).toEqual(blocked(300_000));
  });

  test('a single client is stopped and paced as its limit is', () => {
    const world = worldOf();
    ask(world, { client: 'a' }, quotaOf(10));
    expect(world.limit.meter.rate(0)).toBe(10 / 300);
    world.now = 60_000;
    ask(world, { client: 'a' }, quotaOf(0));
    expect(world.limit.isBlocked(60_000)).toBe(true);
    expect(world.arrive({ client: 'a' }).told).toEqual(blocked(300_000));
  });

  test.each([401, 407])('what a %i tells holds its client alone: it was not recognised', (status) => {
    const world = worldOf();
    for (const client of ['a', 'b']) ask(world, { client }, quotaOf(50));
    ask(world, { client: 'a' }, quotaOf(0), status);
    expect(world.arrive({ client: 'a' }).told).toEqual(held(300_000));
    expect(world.arrive({ client: 'b' }).told).toEqual(ADMITTED);
  });

  test('and clients are told different limits in turn, each is held by its own', () => {
    const world = worldOf();
    ask(world, { client: 'a' }, quotaOf(59));
    world.now = 1;
    ask(world, { client: 'b' }, quotaOf(4999, 5000));
    world.now = 2;
    ask(world, { client: 'a' }, quotaOf(0));
    for (const client of ['b', 'c']) expect(world.arrive({ client }).told).toEqual(ADMITTED);
    expect(world.arrive({ client: 'a' }).told).toEqual(held(300_000));
    ask(world, { client: 'b' }, quotaOf(10, 5000));
    expect(world.limit.meter.rate(2)).toBe(Number.POSITIVE_INFINITY);
  });

  test('and one client is told two limits in turn, it is held by both', () => {
    const world = worldOf();
    for (const limit of [60, 5000, 60]) ask(world, { client: 'a' }, quotaOf(limit - 1, limit));
    ask(world, { client: 'a' }, quotaOf(0, 5000));
    expect(world.arrive({ client: 'a' }).told).toEqual(blocked(300_000));
  });
});

describe('quotas that were found apart', () => {
  test('are taken for one again ten minutes after the last sign of that', () => {
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

describe('a spent quota that another process was told', () => {
  const restored = (): World => {
    const told = worldOf();
    ask(told, ANONYMOUS, quotaOf(0));
    const limits = learnedOf(told.gate.view(0).limits, () => undefined, 10, 0);
    const world = worldOf();
    if (world.store instanceof MemoryStore) world.store.restore({ limits, holds: [] }, 0);
    return world;
  };

  test('stops whom it is about after a restart', () => {
    const world = restored();
    expect(world.arrive(ANONYMOUS).told).toEqual(blocked(300_000));
    expect(world.arrive({ ...ANONYMOUS, refs: [SHARED] }).told).toEqual(blocked(300_000));
  });

  test('and nobody else', () => {
    const world = restored();
    expect(world.arrive(TOKEN).told).toEqual(ADMITTED);
    expect(world.arrive(ANONYMOUS).told).toEqual(held(300_000));
  });
});

describe('where the upstream counts', () => {
  const own = (scope: 'client' | 'credential', key: string): readonly LimitRef[] => [
    { upstream: 'up', nested: '', scope, key },
  ];

  test('credentials, a spent quota stops all clients that show it, and no other, from its first answer on', () => {
    const world = worldOf({ scope: 'credential' });
    const [none, token] = [own('credential', 'none'), own('credential', 'token')];
    ask(world, { client: 'a', refs: none }, quotaOf(0), 403);
    ask(world, { client: 'b', refs: token }, quotaOf(4999, 5000));
    for (const client of ['a', 'c']) expect(world.arrive({ client, refs: none }).told).toEqual({ ...held(300_000) });
    ask(world, { client: 'a', refs: token }, quotaOf(4998, 5000));
  });

  test('clients, a spent quota stops one of them, with the credential that was answered so', () => {
    const world = worldOf({ scope: 'client' });
    const refs = own('client', 'a');
    ask(world, { client: 'a', refs }, quotaOf(0));
    expect(world.arrive({ client: 'a', refs }).told).toEqual(held(300_000));
    ask(world, { client: 'a', refs, credential: 'Bearer a' }, quotaOf(4999, 5000));
    expect(world.arrive({ client: 'a', refs }).told).toEqual(held(300_000));
    expect(world.arrive({ client: 'b', refs: own('client', 'b') }).told).toEqual(ADMITTED);
  });
});

test('a spent quota at a nested limit holds its client there alone', () => {
  const world = worldOf({ nested: [{ name: 'search', scope: 'upstream', isKeyed: false, rate: OPEN }] });
  const search: LimitRef = { upstream: 'up', nested: 'search', scope: 'upstream', key: '' };
  const refs = [SHARED, search];
  ask(world, { ...ANONYMOUS, refs }, quotaOf(0));
  ask(world, { ...TOKEN, refs }, quotaOf(29, 30));
  expect(world.arrive({ ...ANONYMOUS, refs }).told).toEqual(held(300_000));
  expect(world.arrive(ANONYMOUS).told).toEqual(ADMITTED);
});
