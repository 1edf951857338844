/** Quotas, from the counters of a family and from RateLimit, and the stricter of two. */
import { describe, expect, test } from 'vitest';
import type { Quota } from '../../../src/core/hints/hints.ts';
import {
  clampSpentReset,
  makeQuotaCounters,
  parseBucketField,
  parseRateLimitField,
  type QuotaCounters,
  recordLimit,
  recordRemaining,
  recordReset,
  recordResetAfter,
  stricterQuota,
  toQuota,
} from '../../../src/core/hints/quota-fields.ts';

const MONTH = 31 * 86_400_000;
const EMPTY = makeQuotaCounters();
const sentAt = () => 0;

function quota(partial: Partial<Quota>): Quota {
  return { remaining: 5, limit: undefined, resetIn: undefined, window: undefined, ...partial };
}

describe('the limit of a family', () => {
  const after = (...values: readonly string[]): QuotaCounters => {
    const counters = makeQuotaCounters();
    for (const value of values) recordLimit(counters, value);
    return counters;
  };

  test.each<[string, readonly string[], Partial<QuotaCounters>]>([
    ['a number', ['100'], { limit: 100 }],
    ['a number with its window', ['100;w=60'], { limit: 100, window: 60_000 }],
    [
      'the first of a list, with the window that has its number',
      ['100, 50;w=1, 100;w=60'],
      { limit: 100, window: 60_000 },
    ],
    [
      'the first of a list, with the first usable window',
      ['100, 100;w=0, 100;w=60, 100;w=9'],
      { limit: 100, window: 60_000 },
    ],
    ['the first of a list, without a window', ['100, 50;w=1'], { limit: 100 }],
    ['the smallest of several, without the window of another', ['100;w=60', '50'], { limit: 50 }],
    ['the smallest of several, with its own window', ['50;w=1', '100;w=60'], { limit: 50, window: 1000 }],
    ['the first of equal ones', ['50;w=1', '50;w=60'], { limit: 50, window: 1000 }],
    ['a whole number', ['100.9'], { limit: 100 }],
    ['none in an empty field', [''], {}],
    ['none in a malformed field', ['(100)'], {}],
    ['none that is no number', ['x;w=60, 100;w=1'], {}],
    ['none below 0', ['-1'], {}],
    ['none of 0, which is recorded', ['0'], { isLimitZero: true }],
    ['none of 0 in a list', ['0, 0;w=60'], { isLimitZero: true }],
    ['none of less than 1', ['0.5'], {}],
  ])('is %s', (_, values, expected) => {
    expect(after(...values)).toEqual({ ...EMPTY, ...expected });
  });
});

describe('the other counters of a family', () => {
  test('are the smallest remainder and the longest resets; what is not readable is ignored', () => {
    const counters = makeQuotaCounters();
    for (const value of ['9', 'x', '7.9, 8', '-1', '']) recordRemaining(counters, value);
    for (const value of ['2', 'x', '3, 1', '-1', '']) recordReset(counters, value, sentAt);
    for (const value of ['4', 'x', '5, 6s', '-1', '']) recordResetAfter(counters, value, sentAt);
    expect(counters).toEqual({ ...EMPTY, remaining: 7, reset: 3000, resetAfter: 6000 });
  });

  test('are an epoch only as a reset', () => {
    const counters = makeQuotaCounters();
    recordReset(counters, '2000000000', () => 1_999_999_990_000);
    recordResetAfter(counters, '2000000000', () => 1_999_999_990_000);
    expect(counters).toEqual({ ...EMPTY, reset: 10_000, resetAfter: 2e12 });
  });
});

describe('the quota of a family', () => {
  test.each<[string, Partial<QuotaCounters>, isSpent: boolean, Quota | undefined]>([
    ['is unknown without counters', {}, true, undefined],
    ['is unknown with a limit only', { limit: 9, window: 1000 }, true, undefined],
    ['is unknown with a reset of a success', { reset: 7 }, false, undefined],
    ['is spent with a reset of a rejection', { reset: 7 }, true, quota({ remaining: 0, resetIn: 7 })],
    [
      'has all counters',
      { remaining: 5, limit: 9, reset: 7, window: 8 },
      false,
      quota({ limit: 9, resetIn: 7, window: 8 }),
    ],
    ['prefers a delay', { remaining: 5, reset: 7, resetAfter: 6 }, false, quota({ resetIn: 6 })],
    ['is whole at once', { remaining: 5, reset: 7, resetAfter: 0 }, true, quota({ resetIn: 0 })],
    ['is unknown for 0 of 0', { remaining: 0, isLimitZero: true }, false, undefined],
    ['is spent for 0 of 0 on a rejection', { remaining: 0, isLimitZero: true }, true, quota({ remaining: 0 })],
    ['is spent with 0', { remaining: 0 }, false, quota({ remaining: 0 })],
    ['has a remainder of a limit of 0', { remaining: 5, isLimitZero: true }, false, quota({})],
    ['has a reset after a month', { remaining: 5, reset: MONTH }, false, quota({ resetIn: MONTH })],
    ['has no later reset', { remaining: 5, reset: MONTH + 1 }, false, quota({})],
    ['is spent for a month', { remaining: 0, reset: MONTH }, false, quota({ remaining: 0, resetIn: MONTH })],
    ['is spent no longer', { remaining: 0, reset: MONTH + 1 }, false, quota({ remaining: 0, resetIn: MONTH })],
  ])('%s', (_, counters, isSpent, expected) => {
    expect(toQuota({ ...EMPTY, ...counters }, isSpent)).toEqual(expected);
  });
});

test.each<[string, Quota | undefined]>([
  ['32/40', quota({ remaining: 8, limit: 40 })],
  ['\t 32/40 \t', quota({ remaining: 8, limit: 40 })],
  ['0/40', quota({ remaining: 40, limit: 40 })],
  ['41/40', quota({ remaining: 0, limit: 40 })],
  ['0/0', undefined],
  ['x1/40', undefined],
  ['1/40x', undefined],
  ['1 /40', undefined],
  ['/40', undefined],
  ['1/', undefined],
  ['', undefined],
])('a bucket of %j', (value, expected) => {
  expect(parseBucketField(value)).toEqual(expected);
});

describe('the quota of RateLimit', () => {
  test.each<[field: string, policies: string, Quota | undefined]>([
    ['"a";r=5', '', quota({})],
    ['"a";r=5;t=7', '"b";q=1;w=1, "a";q=9;w=8', quota({ limit: 9, resetIn: 7000, window: 8000 })],
    ['"a";r=5;t=7', '"a";q=9;window=8', quota({ limit: 9, resetIn: 7000, window: 8000 })],
    ['"a";r=5', '"a";q=9;w=2678400', quota({ limit: 9, window: MONTH })],
    ['"a";r=5', '"a";q=9;w=2678401', quota({ limit: 9 })],
    ['"a";r=5', '"a";q=9;w=0;window=8', quota({ limit: 9 })],
    ['"a";r=5;t="7"', '"a";q="9";w="8"', quota({})],
    ['"a";r=5;t=-7', '"a";q=-9;w=-8', quota({})],
    ['"a";r=5;t=0', '"a";q=0', quota({ resetIn: 0 })],
    ['"a";r=5;t=2678400', '', quota({ resetIn: MONTH })],
    ['"a";r=5;t=2678401', '', quota({})],
    ['"a";r=0;t=2678401', '', quota({ remaining: 0, resetIn: MONTH })],
    ['"a";r=5', '"a";q=9;qu="requests"', quota({ limit: 9 })],
    ['"a";r=5', '"a";q=9;qu="content-bytes"', undefined],
    ['"a";r=3, "b";r=5', '"a";q=9;qu="content-bytes"', quota({})],
    ['"a";r="3", "b";t=9, "c";r=-1, "d";r=5', '', quota({})],
    ['?1;r=5', '(', quota({})],
    ['(', '"a";q=9', undefined],
    ['', '', undefined],
    ['remaining=5', '', quota({})],
    ['remaining=5, 7;r=3', '', quota({})],
    ['remaining=5', '?1;w=60', quota({})],
    ['limit=9, remaining=5, reset=7', '1;w=1, 9;w=8', quota({ limit: 9, resetIn: 7000, window: 8000 })],
    ['remaining=4, limit=8, reset=1, remaining=5, limit=9, reset=7', '', quota({ limit: 9, resetIn: 7000 })],
    ['limit=0, remaining=5, reset=2678401', '0;w=8', quota({})],
    ['limit=9, remaining=0, reset=2678401', '', quota({ remaining: 0, limit: 9, resetIn: MONTH })],
    ['limit=9, remaining="5"', '', undefined],
    ['limit=9, remaining=-5', '', undefined],
  ])('%s with the policies %j', (field, policies, expected) => {
    expect(parseRateLimitField(field, policies)).toEqual(expected);
  });
});

describe('the stricter of two quotas', () => {
  const spent = (resetIn?: number) => quota({ remaining: 0, resetIn });

  test.each<[string, stricter: Quota, other: Quota]>([
    ['the spent one', spent(1), quota({ remaining: 1, resetIn: 60_000 })],
    ['of spent ones, the one that resets later', spent(2), spent(1)],
    ['of spent ones, one that resets at once before one without a reset', spent(0), spent()],
    ['the slower one', quota({ remaining: 100, resetIn: 100_000 }), quota({ remaining: 5, resetIn: 1000 })],
    ['the one with a pace', quota({ remaining: 100, resetIn: 1000 }), quota({ remaining: 5 })],
    ['the one with the smaller count, without paces', quota({ remaining: 4 }), quota({ remaining: 5 })],
    ['that of the smaller count, at equal paces', quota({ resetIn: 1000 }), quota({ remaining: 10, resetIn: 2000 })],
    ['that of the slower window', quota({ limit: 10, window: 10_000 }), quota({ limit: 20, window: 10_000 })],
    // 0.005 a millisecond. The other one has 0.01.
    ['the one with a window and no limit', quota({ resetIn: 1000, window: 1 }), quota({ remaining: 1, resetIn: 100 })],
    ['the one with a limit and no window', quota({ resetIn: 1000, limit: 100 }), quota({ remaining: 1, resetIn: 100 })],
    ['the one with a window and no reset', quota({ limit: 5, window: 1000 }), quota({ remaining: 1, resetIn: 100 })],
    [
      'by the larger of two paces',
      quota({ resetIn: 1000 }),
      quota({ remaining: 1, resetIn: 1000, limit: 1, window: 100 }),
    ],
    [
      'by the larger of two paces',
      quota({ resetIn: 1000 }),
      quota({ remaining: 6, resetIn: 600, limit: 1, window: 1e6 }),
    ],
    [
      'the one that resets later than at once',
      quota({ remaining: 9, resetIn: 1 }),
      quota({ remaining: 1, resetIn: 0 }),
    ],
  ])('is %s', (_, stricter, other) => {
    expect(stricterQuota(stricter, other)).toBe(stricter);
    expect(stricterQuota(other, stricter)).toBe(stricter);
  });

  test('is the first one of equals, and the one that is there', () => {
    for (const make of [() => spent(), () => spent(7), () => quota({}), () => quota({ resetIn: 1000 })]) {
      const first = make();
      expect([stricterQuota(first, make()), stricterQuota(first, undefined), stricterQuota(undefined, first)]).toEqual([
        ...[first, first, first],
      ]);
      expect(stricterQuota(first, make())).toBe(first);
    }
    expect(stricterQuota(undefined, undefined)).toBeUndefined();
  });
});

test.each<[string, Partial<Quota>, resetIn: number | undefined]>([
  ['stays if it is near', { remaining: 0, resetIn: 299_999 }, 299_999],
  ['stays if it is in five minutes', { remaining: 0, resetIn: 300_000 }, 300_000],
  ['is in five minutes at the latest', { remaining: 0, resetIn: 300_001 }, 300_000],
  ['stays while something is left', { remaining: 1, resetIn: 300_001 }, 300_001],
  ['stays unknown', { remaining: 0 }, undefined],
])('the reset of a quota %s', (_, partial, resetIn) => {
  const given = quota({ limit: 9, window: 8, ...partial });
  const clamped = clampSpentReset(given);
  expect(clamped).toEqual({ ...given, resetIn });
  expect(clamped === given).toBe(given.resetIn === resetIn);
});
