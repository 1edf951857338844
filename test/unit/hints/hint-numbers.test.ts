/** The bounds of the numbers of an upstream. */
import { describe, expect, test } from 'vitest';
import {
  clampCount,
  clampDelay,
  MAX_DELAY,
  maxDefined,
  minDefined,
  parseDecimal,
  roundDelay,
} from '../../../src/core/hints/hint-numbers.ts';
import { parseRetryAfter } from '../../../src/core/hints/parse-retry-after.ts';

test('the longest delay is 31 days', () => {
  expect(MAX_DELAY).toBe(2_678_400_000);
});

describe('a number', () => {
  test.each<[string, number | undefined]>([
    ['0', 0],
    ['007', 7],
    ['12.25', 12.25],
    ['\t 12 \t', 12],
    ['1 2', undefined],
    ['1.', undefined],
    ['.5', undefined],
    ['1.2.3', undefined],
    ['1.x', undefined],
    ['x1', undefined],
    ['1x', undefined],
    ['-1', undefined],
    ['', undefined],
  ])('of %j is %j', (text, number) => {
    expect(parseDecimal(text)).toBe(number);
  });
});

describe('a delay', () => {
  test.each<[given: number, clamped: number | undefined, rounded: number | undefined]>([
    [-1, undefined, undefined],
    [-0.1, undefined, undefined],
    [Number.NaN, undefined, undefined],
    [0, 0, 0],
    [0.4, 0, 0],
    [0.5, 1, 1],
    [64.57 * 1000, 64_570, 64_570],
    [2_678_400_000, 2_678_400_000, 2_678_400_000],
    [2_678_400_001, 2_678_400_000, 2_678_400_001],
    [Number.POSITIVE_INFINITY, 2_678_400_000, Number.POSITIVE_INFINITY],
  ])('of %d ms is clamped to %j, and rounded to %j', (given, clamped, rounded) => {
    expect([clampDelay(given), roundDelay(given)]).toEqual([clamped, rounded]);
  });

  test('of a Retry-After is clamped too', () => {
    const waits = ['0', '2678401', '-1', 'soon'].map((value) => parseRetryAfter(value, () => 0));
    expect(waits).toEqual([0, 2_678_400_000, undefined, undefined]);
  });
});

describe('a count', () => {
  test.each<[given: number | undefined, count: number | undefined]>([
    [undefined, undefined],
    [Number.NaN, undefined],
    [-1, undefined],
    [-0.5, undefined],
    [0, 0],
    [0.9, 0],
    [1, 1],
    [999_999_999_999_999, 999_999_999_999_999],
    [1e15, 999_999_999_999_999],
  ])('of %j is %j', (given, count) => {
    expect(clampCount(given)).toBe(count);
  });
});

test.each<[a: number | undefined, b: number | undefined, larger: number | undefined, smaller: number | undefined]>([
  [undefined, undefined, undefined, undefined],
  [1, undefined, 1, 1],
  [undefined, 1, 1, 1],
  [0, undefined, 0, 0],
  [undefined, 0, 0, 0],
  [1, 2, 2, 1],
  [2, 1, 2, 1],
])('of %j and %j, %j is the larger and %j the smaller value', (a, b, larger, smaller) => {
  expect([maxDefined(a, b), minDefined(a, b)]).toEqual([larger, smaller]);
});
