import { describe, expect, test } from 'vitest';
import { QuotaPace } from '../../src/policy/quota.ts';
import type { Quota } from '../../src/policy/types.ts';

function quotaOf(quota: Partial<Quota>): Quota {
  return { remaining: 10, limit: 100, resetIn: 10_000, window: 60_000, ...quota };
}

function paceOf(quota: Partial<Quota>): QuotaPace {
  const pace = new QuotaPace();
  pace.note(quotaOf(quota), 1000);
  return pace;
}

describe('a quota that is spent', () => {
  test('stops everything until its reset', () => {
    const pace = paceOf({ remaining: 0, resetIn: 4000 });
    expect(pace.delay(1000)).toBe(4000);
    expect(pace.delay(4999)).toBe(1);
    expect(pace.delay(5000)).toBe(0);
    expect(pace.stopUntil).toBe(5000);
  });

  test('stops nothing when no reset is told', () => {
    const pace = paceOf({ remaining: 0, resetIn: undefined });
    expect(pace.delay(1000)).toBe(0);
    expect(pace.rate(1000)).toBe(Number.POSITIVE_INFINITY);
  });

  test('is a stop: no later word makes it shorter', () => {
    const pace = paceOf({ remaining: 0, resetIn: 4000 });
    pace.stop(9000); // a Retry-After
    pace.note(quotaOf({ remaining: 0, resetIn: 500 }), 2000);
    pace.stop(3000);
    expect(pace.stopUntil).toBe(9000);
  });
});

describe('a later word on a quota', () => {
  test('that something is left ends the stop, and not what a Retry-After asked for', () => {
    const pace = paceOf({ remaining: 0, resetIn: 300_000 });
    expect(pace.delay(2000)).toBe(299_000);
    pace.note(quotaOf({ remaining: 80, resetIn: 60_000 }), 2000);
    expect(pace.delay(2000)).toBe(0);
    pace.stop(5000);
    pace.note(quotaOf({ remaining: 79, resetIn: undefined }), 2500);
    expect(pace.delay(2500)).toBe(2500);
  });
});

describe('a quota that runs out', () => {
  test('is not rationed while more than half of it is left', () => {
    expect(paceOf({ remaining: 51 }).rate(1000)).toBe(Number.POSITIVE_INFINITY);
    expect(paceOf({ remaining: 50 }).rate(1000)).toBeLessThan(Number.POSITIVE_INFINITY);
  });

  test('is rationed at what is left over the time left, or its average if that is more', () => {
    expect(paceOf({ remaining: 50, resetIn: 10_000 }).rate(1000)).toBe(5);
    expect(paceOf({ remaining: 10, resetIn: 10_000, window: 60_000 }).rate(1000)).toBeCloseTo(100 / 60, 9);
    expect(paceOf({ remaining: 10, resetIn: 10_000, window: undefined }).rate(1000)).toBe(1);
  });

  test('is not rationed without a limit to compare with, or a reset to last until', () => {
    expect(paceOf({ remaining: 1, limit: undefined }).rate(1000)).toBe(Number.POSITIVE_INFINITY);
    expect(paceOf({ remaining: 1, resetIn: undefined }).rate(1000)).toBe(Number.POSITIVE_INFINITY);
    expect(paceOf({ remaining: 1, resetIn: 0 }).rate(1000)).toBe(Number.POSITIVE_INFINITY);
  });

  test('is forgotten at its reset', () => {
    const pace = paceOf({ remaining: 10, resetIn: 10_000 });
    expect(pace.rate(10_999)).toBeLessThan(Number.POSITIVE_INFINITY);
    expect(pace.rate(11_000)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('what is left', () => {
  test('is told as a share of the whole', () => {
    expect(paceOf({ remaining: 25, limit: 100 }).left).toBe(0.25);
    expect(paceOf({ remaining: 300, limit: 100 }).left).toBe(1);
    expect(paceOf({ limit: undefined }).left).toBeUndefined();
    expect(new QuotaPace().left).toBeUndefined();
  });
});
