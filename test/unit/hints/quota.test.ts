import { describe, expect, test } from 'vitest';
import { QuotaPacing } from '../../../src/core/quota/quota-pacing.ts';
import type { Quota } from '../../../src/core/hints/hints.ts';
import { limitedTo, response } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

function quotaOf(quota: Partial<Quota>): Quota {
  return { remaining: 10, limit: 100, resetIn: 10_000, window: 60_000, ...quota };
}

function paceOf(quota: Partial<Quota>): QuotaPacing {
  const pace = new QuotaPacing();
  pace.onQuota(quotaOf(quota), 990, 1000);
  return pace;
}

describe('a quota that is spent', () => {
  test('stops all requests until its reset', () => {
    const pace = paceOf({ remaining: 0, resetIn: 4000 });
    expect(pace.delay(1000)).toBe(4000);
    expect(pace.delay(4999)).toBe(1);
    expect(pace.delay(5000)).toBe(0);
    expect(pace.stopUntil).toBe(5000);
  });

  test('stops no request without a reset', () => {
    const pace = paceOf({ remaining: 0, resetIn: undefined });
    expect(pace.delay(1000)).toBe(0);
    expect(pace.rate(1000)).toBe(Number.POSITIVE_INFINITY);
  });

  test('is not made shorter by a later report', () => {
    const pace = paceOf({ remaining: 0, resetIn: 4000 });
    pace.stop(9000); // a Retry-After
    pace.onQuota(quotaOf({ remaining: 0, resetIn: 500 }), 1990, 2000);
    pace.stop(3000);
    expect(pace.stopUntil).toBe(9000);
  });
});

describe('a later quota report', () => {
  test('of a remainder ends the stop, but not the wait of a Retry-After', () => {
    const pace = paceOf({ remaining: 0, resetIn: 300_000 });
    expect(pace.delay(2000)).toBe(299_000);
    pace.onQuota(quotaOf({ remaining: 80, resetIn: 60_000 }), 1990, 2000);
    expect(pace.delay(2000)).toBe(0);
    pace.stop(5000);
    pace.onQuota(quotaOf({ remaining: 79, resetIn: undefined }), 2490, 2500);
    expect(pace.delay(2500)).toBe(2500);
  });
});

describe('an older quota report', () => {
  test('is ignored, because responses overtake each other', () => {
    const pace = paceOf({ remaining: 0, resetIn: 4000 }); // of a request sent at 990
    pace.onQuota(quotaOf({ remaining: 5, resetIn: 4000 }), 989, 1001);
    expect([pace.delay(1001), pace.left]).toEqual([3999, 0]);
  });

  test('is used if it has the same time, because the order is unknown', () => {
    const pace = paceOf({ remaining: 0, resetIn: 4000 });
    pace.onQuota(quotaOf({ remaining: 5, resetIn: 4000 }), 990, 1001);
    expect([pace.delay(1001), pace.left]).toEqual([0, 0.05]);
  });
});

describe('a spent quota with a reset a second or two away, in whole seconds', () => {
  test('stops requests for the interval of one request, from the send of that request on', () => {
    const pace = new QuotaPacing();
    pace.onQuota(quotaOf({ remaining: 0, limit: 100, resetIn: 1000, window: 1000 }), 990, 1000);
    expect(pace.delay(995)).toBe(5);
    expect(pace.delay(1000)).toBe(0);
  });

  test('stops no request without a window', () => {
    expect(paceOf({ remaining: 0, resetIn: 2000, window: undefined }).delay(1000)).toBe(0);
  });

  test('stops requests until its reset if that is in milliseconds or further away', () => {
    expect(paceOf({ remaining: 0, resetIn: 1200 }).delay(1000)).toBe(1200);
    expect(paceOf({ remaining: 0, resetIn: 3000 }).delay(1000)).toBe(3000);
  });
});

describe('a quota that runs low', () => {
  test('is not paced while more than half of it is left', () => {
    expect(paceOf({ remaining: 51 }).rate(1000)).toBe(Number.POSITIVE_INFINITY);
    expect(paceOf({ remaining: 50 }).rate(1000)).toBeLessThan(Number.POSITIVE_INFINITY);
  });

  test('is paced at the remainder over the time left, or at its average if that is more', () => {
    expect(paceOf({ remaining: 50, resetIn: 10_000 }).rate(1000)).toBe(5);
    expect(paceOf({ remaining: 10, resetIn: 10_000, window: 60_000 }).rate(1000)).toBeCloseTo(100 / 60, 9);
  });

  test('is not paced if no window is known or reported', () => {
    expect(paceOf({ remaining: 10, resetIn: 10_000, window: undefined }).rate(1000)).toBe(Number.POSITIVE_INFINITY);
  });

  test('is not paced without a limit to compare with, or without a reset', () => {
    expect(paceOf({ remaining: 1, limit: undefined }).rate(1000)).toBe(Number.POSITIVE_INFINITY);
    expect(paceOf({ remaining: 1, resetIn: undefined }).rate(1000)).toBe(Number.POSITIVE_INFINITY);
    expect(paceOf({ remaining: 1, resetIn: 0 }).rate(1000)).toBe(Number.POSITIVE_INFINITY);
  });

  test('delays no request beyond its reset, though an interval would be longer', () => {
    const world = new World({ random: () => 0.5 });
    const first = world.arrive();
    world.send(first);
    world.answer(first, response(200, { quota: quotaOf({ remaining: 2, resetIn: 3000, window: 150_000 }) }));
    world.now = 2000; // one in 1500 ms: the second at 3500 without the reset
    expect(world.arrive().admission).toEqual({ kind: 'admitted' });
    expect(world.limit.meter.delay(2000)).toBe(1000);
    expect(world.limit.meter.delay(3000)).toBe(0);
  });

  test('is dropped at its reset', () => {
    const pace = paceOf({ remaining: 10, resetIn: 10_000 });
    expect(pace.rate(10_999)).toBeLessThan(Number.POSITIVE_INFINITY);
    expect(pace.rate(11_000)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('a window is distinguished from a bucket', () => {
  const EVEN = 100 / 60; // quota ÷ window, requests a second

  /** Reports of a quota of 100 a minute, each `[at, remaining, resetIn]`; returns the rate after the last. */
  function rateAfter(...reports: readonly (readonly [at: number, remaining: number, resetIn: number])[]): number {
    const pace = new QuotaPacing();
    for (const [at, remaining, resetIn] of reports) pace.onQuota(quotaOf({ remaining, resetIn }), at, at);
    return pace.rate(reports.at(-1)?.[0] ?? Number.NaN);
  }

  test('by a reset that stays fixed while a quarter of the quota is used up', () => {
    // 20 are left for 50 s: all that is left of a window, while a bucket would add 100 a minute.
    expect(rateAfter([0, 45, 60_000], [10_000, 20, 50_000])).toBe(20 / 50);
    expect(rateAfter([0, 45, 60_000], [10_000, 21, 50_000])).toBe(EVEN);
  });

  test('also if resets are reported in whole seconds', () => {
    expect(rateAfter([0, 45, 60_000], [10_000, 20, 51_500])).toBe(20_000 / 51_500);
    expect(rateAfter([0, 45, 60_000], [10_000, 20, 51_501])).toBe(EVEN);
    expect(rateAfter([0, 45, 60_000], [10_000, 20, 48_500])).toBe(20_000 / 48_500);
  });

  test('by a reset that moves away, even in steps too small to detect singly', () => {
    expect(rateAfter([0, 45, 30_000], [1000, 35, 30_000], [2000, 25, 30_000], [3000, 19, 30_000])).toBe(EVEN);
  });

  test('again for each window', () => {
    const used = [[0, 100, 60_000] as const, [50_000, 40, 10_000] as const];
    expect(rateAfter(...used)).toBe(4);
    expect(rateAfter(...used, [60_000, 45, 60_000])).toBe(EVEN);
    expect(rateAfter(...used, [60_000, 45, 60_000], [62_000, 20, 58_000])).toBe(20 / 58);
  });

  test('but not within 2 s, as a reset that is always reported as a second moves during a wait too', () => {
    expect(rateAfter([0, 45, 60_000], [1999, 20, 58_001])).toBe(EVEN);
    expect(rateAfter([0, 45, 1000], [1000, 20, 1000], [2000, 5, 1000])).toBe(5);
  });

  test('but a bucket with more left than its average may be used up by its reset, so that no quota is lost', () => {
    expect(rateAfter([0, 100, 60_000], [55_000, 50, 5000])).toBe(10);
  });
});

describe('the number in flight', () => {
  /** Six are sent at 0 under an unknown limit; one of them is answered with a quota. */
  function worldWithQuota(remaining: number): World {
    const world = new World({ random: () => 0.5 });
    const requests = Array.from({ length: 6 }, () => world.arrive());
    for (const request of requests) world.send(request);
    const [first] = requests;
    if (first !== undefined) world.answer(first, response(200, { quota: quotaOf({ remaining, resetIn: 10_000 }) }));
    return world;
  }

  test('is subtracted from a reported quota, which may include only the request of the response', () => {
    const world = worldWithQuota(45);
    expect(world.limit.meter.quotaLeft).toBe(0.4);
    expect(world.limit.meter.rate(0)).toBe(40 / 10);
    expect(worldWithQuota(6).limit.meter.rate(0)).toBeCloseTo(100 / 60, 9);
  });

  test('stops further requests until the reset if it is all that is left', () => {
    for (const remaining of [5, 4, 0]) expect(worldWithQuota(remaining).limit.meter.delay(0)).toBe(10_000);
    expect(worldWithQuota(6).limit.meter.delay(0)).toBe(600); // one in 0.6 s: the remainder is paced
  });

  test('is not subtracted if more is sent than the quota would allow', () => {
    const world = new World({ mode: 'observe', upstream: limitedTo(1), random: () => 0.5 });
    const requests = Array.from({ length: 6 }, () => world.arrive());
    for (const request of requests) world.send(request);
    const [first] = requests;
    if (first !== undefined) world.answer(first, response(200, { quota: quotaOf({ remaining: 5 }) }));
    expect(world.limit.meter.quotaLeft).toBe(0.05);
    expect(world.limit.isBlocked(0)).toBe(false);
  });
});

describe('the remainder', () => {
  test('is reported as a share of the whole', () => {
    expect(paceOf({ remaining: 25, limit: 100 }).left).toBe(0.25);
    expect(paceOf({ remaining: 300, limit: 100 }).left).toBe(1);
    expect(paceOf({ limit: undefined }).left).toBeUndefined();
    expect(new QuotaPacing().left).toBeUndefined();
  });
});
