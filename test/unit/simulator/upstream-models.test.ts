import { describe, expect, test } from 'vitest';
import type { LimitModelSpec } from '../../../src/simulator/limit-models/limit-model-spec.ts';
import { limitOf, makeLimitModel, withLimit } from '../../../src/simulator/limit-models/limit-model-spec.ts';

/** Which arrivals are admitted, and the announced wait of the others, to the nanosecond. */
function arriveAt(spec: LimitModelSpec, times: readonly number[]): (true | number)[] {
  const model = makeLimitModel(spec);
  return times.map((now) => {
    const admission = model.tryAcquire(now);
    return admission.accepted || Math.round(admission.retryAfterMs * 1e6) / 1e6;
  });
}

function repeatCalls(now: number, times: number): number[] {
  return Array.from({ length: times }, () => now);
}

describe('token bucket', () => {
  const spec: LimitModelSpec = { kind: 'token-bucket', rate: 100, burst: 3 };

  test('admits its burst at once, then one request for each new token', () => {
    expect(arriveAt(spec, [0, 0, 0, 0, 9, 10, 10, 20])).toEqual([true, true, true, 10, 1, true, 10, true]);
  });

  test('holds no more than its burst, however long it was idle', () => {
    expect(arriveAt(spec, repeatCalls(1e9, 4))).toEqual([true, true, true, 10]);
  });

  test('counts fractions of tokens', () => {
    expect(arriveAt({ kind: 'token-bucket', rate: 0.5, burst: 1 }, [0, 500, 1999, 2000])).toEqual([
      true,
      1500,
      1,
      true,
    ]);
  });

  test('reports its quota', () => {
    const model = makeLimitModel(spec);
    expect(model.quota(0)).toEqual({ remaining: 3, limit: 3, resetIn: 0, window: 30 });
    model.tryAcquire(0);
    model.tryAcquire(0);
    expect(model.quota(5)).toEqual({ remaining: 1, limit: 3, resetIn: 15, window: 30 });
  });

  test('fills at the new rate from the change on, and keeps its tokens', () => {
    const model = makeLimitModel(spec);
    for (const now of repeatCalls(0, 3)) model.tryAcquire(now);
    model.setLimit(10, 5); // half a token has been added by then
    expect(model.limit).toBe(10);
    expect(model.tryAcquire(5)).toEqual({ accepted: false, retryAfterMs: 50 });
    expect(model.tryAcquire(55)).toEqual({ accepted: true });
  });
});

describe('GCRA', () => {
  const spec: LimitModelSpec = { kind: 'gcra', rate: 100, burst: 3 };

  test('admits its burst at once, then one request an interval', () => {
    expect(arriveAt(spec, [0, 0, 0, 0, 9, 10, 10, 20])).toEqual([true, true, true, 10, 1, true, 10, true]);
  });

  test('spaces requests strictly with a burst of 1', () => {
    expect(arriveAt({ kind: 'gcra', rate: 10, burst: 1 }, [0, 99, 100, 250, 300, 350])).toEqual([
      true,
      1,
      true,
      true,
      50,
      true,
    ]);
  });

  test('reports its quota', () => {
    const model = makeLimitModel(spec);
    model.tryAcquire(0);
    model.tryAcquire(0);
    expect(model.quota(5)).toEqual({ remaining: 1, limit: 3, resetIn: 15, window: 30 });
    expect(model.quota(1000)).toEqual({ remaining: 3, limit: 3, resetIn: 0, window: 30 });
  });

  test('keeps its debt in requests when the rate changes', () => {
    const model = makeLimitModel(spec);
    for (const now of repeatCalls(0, 3)) model.tryAcquire(now);
    model.setLimit(10, 5); // the debt is two and a half by then
    expect(model.limit).toBe(10);
    expect(model.tryAcquire(5)).toEqual({ accepted: false, retryAfterMs: 50 });
    expect(model.tryAcquire(55)).toEqual({ accepted: true });
  });
});

describe('fixed window', () => {
  const spec: LimitModelSpec = { kind: 'fixed-window', limit: 2, window: 1000 };

  test('resets its count at every multiple of its length', () => {
    expect(arriveAt(spec, [0, 400, 999, 1000, 1001, 1002])).toEqual([true, true, 1, true, true, 998]);
  });

  test('admits twice the limit around the end of a window', () => {
    expect(arriveAt(spec, [999, 999, 1000, 1000, 1000])).toEqual([true, true, true, true, 1000]);
  });

  test('does not count refused requests', () => {
    expect(arriveAt(spec, [0, 0, 500, 600, 700, 1000]).at(-1)).toBe(true);
  });

  test('begins at a multiple of its length, not at the first request', () => {
    expect(arriveAt(spec, [5900, 5950, 5990, 6000])).toEqual([true, true, 10, true]);
  });

  test('reports its quota, never below zero', () => {
    const model = makeLimitModel({ kind: 'fixed-window', limit: 3, window: 1000 });
    model.tryAcquire(1250);
    model.tryAcquire(1250);
    expect(model.quota(1250)).toEqual({ remaining: 1, limit: 3, resetIn: 750, window: 1000 });
    model.setLimit(1, 1300);
    expect(model.quota(1300)).toEqual({ remaining: 0, limit: 1, resetIn: 700, window: 1000 });
    expect(model.quota(2000)).toEqual({ remaining: 1, limit: 1, resetIn: 1000, window: 1000 });
  });

  test('admits more in the current window when the limit is raised', () => {
    const model = makeLimitModel(spec);
    for (const now of repeatCalls(0, 2)) model.tryAcquire(now);
    model.setLimit(3, 10);
    expect(model.tryAcquire(10)).toEqual({ accepted: true });
    expect(model.tryAcquire(10)).toEqual({ accepted: false, retryAfterMs: 990 });
  });
});

describe('sliding window', () => {
  const spec: LimitModelSpec = { kind: 'sliding-window', limit: 2, window: 1000 };

  test('frees a place exactly one window after its request', () => {
    expect(arriveAt(spec, [0, 600, 999, 1000, 1599, 1600])).toEqual([true, true, 1, true, 1, true]);
  });

  test('does not admit twice the limit in any interval of its length', () => {
    expect(arriveAt(spec, [999, 999, 1000, 1998, 1999])).toEqual([true, true, 999, 1, true]);
  });

  test('does not count refused requests', () => {
    expect(arriveAt(spec, [0, 0, 500, 999, 1000])).toEqual([true, true, 500, 1, true]);
  });

  test('reports its quota, which is whole again when the last request has left the window', () => {
    const model = makeLimitModel(spec);
    expect(model.quota(0)).toEqual({ remaining: 2, limit: 2, resetIn: 0, window: 1000 });
    model.tryAcquire(0);
    model.tryAcquire(300);
    expect(model.quota(400)).toEqual({ remaining: 0, limit: 2, resetIn: 900, window: 1000 });
    expect(model.quota(1000)).toEqual({ remaining: 1, limit: 2, resetIn: 300, window: 1000 });
  });

  test('stores the whole window when the limit falls and rises again', () => {
    const model = makeLimitModel({ kind: 'sliding-window', limit: 4, window: 1000 });
    for (const now of [0, 100, 200, 300]) model.tryAcquire(now);
    model.setLimit(2, 400);
    // With a limit of 2 there is room once the third of the four has left the window.
    expect(model.tryAcquire(400)).toEqual({ accepted: false, retryAfterMs: 800 });
    model.setLimit(5, 500);
    expect(model.tryAcquire(500)).toEqual({ accepted: true });
    expect(model.tryAcquire(500)).toEqual({ accepted: false, retryAfterMs: 500 });
  });

  test('keeps its count over more arrivals than the initial size of its log', () => {
    const model = makeLimitModel({ kind: 'sliding-window', limit: 300, window: 1000 });
    const accepted = (from: number, to: number) => {
      let count = 0;
      for (let now = from; now < to; now += 1) if (model.tryAcquire(now).accepted) count += 1;
      return count;
    };
    expect(accepted(0, 1000)).toBe(300);
    expect(accepted(1000, 1150)).toBe(150);
    expect(accepted(1150, 3000)).toBe(150 + 300);
  });

  test('keeps times in order when its log grows in the middle of a round', () => {
    const model = makeLimitModel({ kind: 'sliding-window', limit: 200, window: 1000 });
    for (const now of repeatCalls(0, 50)) model.tryAcquire(now);
    for (let now = 1000; now < 1200; now += 1) expect(model.tryAcquire(now).accepted).toBe(true);
    for (let now = 2000; now < 2200; now += 1) {
      expect(model.tryAcquire(now)).toEqual({ accepted: true });
      expect(model.tryAcquire(now)).toEqual({ accepted: false, retryAfterMs: now === 2199 ? 801 : 1 });
    }
  });
});

describe('sliding window that counts refused requests', () => {
  const spec: LimitModelSpec = { kind: 'sliding-window-counting', limit: 2, window: 1000 };

  test('blocks a client that sends without a pause', () => {
    expect(arriveAt(spec, [0, 100, 600, 1050, 1500, 2000])).toEqual([true, true, 500, 550, 550, 500]);
  });

  test('admits a client that returns at the announced time', () => {
    expect(arriveAt(spec, [0, 100, 600, 1100])).toEqual([true, true, 500, true]);
    expect(arriveAt(spec, [0, 0, 0, 0, 999, 1999, 2999])).toEqual([true, true, 1000, 1000, 1, true, true]);
  });
});

describe('concurrency', () => {
  test('has this many places, which are freed as requests end', () => {
    const model = makeLimitModel({ kind: 'concurrency', limit: 2 });
    expect(model.tryAcquire(0).accepted).toBe(true);
    expect(model.tryAcquire(0).accepted).toBe(true);
    expect(model.tryAcquire(1e6)).toEqual({ accepted: false, retryAfterMs: 0 });
    expect(model.quota(1e6)).toEqual({ remaining: 0, limit: 2, resetIn: undefined, window: undefined });
    model.release(1e6);
    expect(model.quota(1e6)?.remaining).toBe(1);
    expect(model.tryAcquire(1e6).accepted).toBe(true);
  });

  test('lets requests beyond a lowered limit finish', () => {
    const model = makeLimitModel({ kind: 'concurrency', limit: 3 });
    for (const now of repeatCalls(0, 3)) model.tryAcquire(now);
    model.setLimit(1, 5);
    expect(model.quota(5)?.remaining).toBe(0);
    for (const now of repeatCalls(6, 2)) model.release(now);
    expect(model.tryAcquire(7).accepted).toBe(false);
    model.release(8);
    expect(model.tryAcquire(8).accepted).toBe(true);
  });

  test('throws if more requests end than were admitted', () => {
    expect(() => makeLimitModel({ kind: 'concurrency', limit: 1 }).release(0)).toThrow(RangeError);
  });
});

describe('unlimited', () => {
  test('admits everything and reports no quota', () => {
    const model = makeLimitModel({ kind: 'unlimited' });
    expect(repeatCalls(0, 1000).every((now) => model.tryAcquire(now).accepted)).toBe(true);
    expect(model.quota(0)).toBeUndefined();
    expect(model.limit).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('a specification', () => {
  test.each<LimitModelSpec>([
    { kind: 'token-bucket', rate: 0, burst: 1 },
    { kind: 'token-bucket', rate: 1, burst: 0.5 },
    { kind: 'gcra', rate: Number.POSITIVE_INFINITY, burst: 1 },
    { kind: 'fixed-window', limit: 0, window: 1000 },
    { kind: 'fixed-window', limit: 1, window: 0 },
    { kind: 'sliding-window', limit: Number.NaN, window: 1000 },
    { kind: 'concurrency', limit: -1 },
  ])('is rejected if a number is out of range: %o', (spec) => {
    expect(() => makeLimitModel(spec)).toThrow(RangeError);
  });

  test.each<LimitModelSpec>([
    { kind: 'token-bucket', rate: 10, burst: 2 },
    { kind: 'gcra', rate: 10, burst: 2 },
    { kind: 'fixed-window', limit: 10, window: 1000 },
    { kind: 'sliding-window-counting', limit: 10, window: 1000 },
    { kind: 'concurrency', limit: 10 },
  ])('with another limit equals a model whose limit is changed to it: $kind', (spec) => {
    const model = makeLimitModel(spec);
    model.setLimit(25, 0);
    expect(limitOf(withLimit(spec, 25))).toBe(25);
    expect(model.limit).toBeCloseTo(makeLimitModel(withLimit(spec, 25)).limit, 9);
  });
});
