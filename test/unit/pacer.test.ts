import { describe, expect, test } from 'vitest';
import { Pacer } from '../../src/policy/pacer.ts';

/** When requests that never wait longer than they must would leave. */
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
  test('lets the first go at once, the second 10 ms before its time, and all later ones one an interval', () => {
    expect(departures(10, 5)).toEqual([0, 90, 190, 290, 390]);
  });

  test('at 1000 a second lets eleven go at once: 10 ms of tolerance', () => {
    expect(departures(1000, 14)).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
  });

  test('keeps the rate exactly in the long run', () => {
    expect(departures(333, 3331).at(-1)).toBeCloseTo(10_000 - 10, 6);
  });

  test('saves nothing up while nobody asks', () => {
    const pacer = new Pacer();
    pacer.take(0, 10);
    pacer.take(5000, 10);
    expect(pacer.delay(5000, 10)).toBe(90);
  });

  test('applies a new rate to the very next request', () => {
    const pacer = new Pacer();
    pacer.take(0, 1);
    expect(pacer.delay(0, 1)).toBe(990);
    expect(pacer.delay(0, 100)).toBe(0);
    expect(pacer.delay(0, 10)).toBe(90);
  });

  test('holds nothing back while no limit is known, and starts from there when one is', () => {
    const pacer = new Pacer();
    for (let i = 0; i < 5; i += 1) {
      expect(pacer.delay(7, Number.POSITIVE_INFINITY)).toBe(0);
      pacer.take(7, Number.POSITIVE_INFINITY);
    }
    expect(pacer.delay(7, 10)).toBe(90);
  });
});
