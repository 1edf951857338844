import { describe, expect, test } from 'vitest';
import { Pacer } from '../../../src/core/rate/pacer.ts';

/** Departure times of requests that never wait longer than they must. */
function departures(rate: number, count: number): number[] {
  const pacer = new Pacer();
  let now = 0;
  return Array.from({ length: count }, () => {
    now += pacer.delay(now, rate);
    pacer.take(now, rate);
    return now;
  });
}

describe('the pacer', () => {
  test('passes the first request at once, and then one in each interval, including the second', () => {
    expect(departures(10, 5)).toEqual([0, 100, 200, 300, 400]);
  });

  test('passes no request early, even by a microsecond', () => {
    const pacer = new Pacer();
    pacer.take(0, 1000);
    expect(pacer.delay(0.999, 1000)).toBeCloseTo(0.001, 9);
    expect(pacer.delay(1, 1000)).toBe(0);
  });

  test('keeps the rate exactly in the long run', () => {
    expect(departures(333, 3331).at(-1)).toBeCloseTo(10_000, 6);
  });

  test('accumulates no tokens while idle', () => {
    const pacer = new Pacer();
    pacer.take(0, 10);
    pacer.take(5000, 10);
    expect(pacer.delay(5000, 10)).toBe(100);
  });

  test('loses no token that was due if it is taken late', () => {
    const pacer = new Pacer();
    pacer.take(0, 200); // the next is due at 5, and arrives at 12
    pacer.take(5, 200);
    expect(pacer.delay(12, 200)).toBe(0);
    pacer.take(5, 200); // due no later than the previous one, whose interval it keeps
    expect(pacer.delay(12, 200)).toBe(3);
  });

  test('applies a new rate to the next request', () => {
    const pacer = new Pacer();
    pacer.take(0, 1);
    expect(pacer.delay(0, 1)).toBe(1000);
    expect(pacer.delay(0, 100)).toBe(10);
    expect(pacer.delay(0, 10)).toBe(100);
  });

  test('delays no request while no limit is known, and starts from there when one is', () => {
    const pacer = new Pacer();
    for (let i = 0; i < 5; i += 1) {
      expect(pacer.delay(7, Number.POSITIVE_INFINITY)).toBe(0);
      pacer.take(7, Number.POSITIVE_INFINITY);
    }
    expect(pacer.delay(7, 10)).toBe(100);
  });
});
