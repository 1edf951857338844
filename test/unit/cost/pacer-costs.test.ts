import { describe, expect, test } from 'vitest';
import { Pacer } from '../../../src/core/rate/pacer.ts';

/** Units a second. */
const RATE = 10;

describe('a pacer of units', () => {
  test('lets an expensive request pass as soon as any other, and delays the next one by its cost', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE);
    expect(pacer.delay(0, RATE)).toBe(100);
    pacer.take(100, RATE, 20);
    expect(pacer.delay(100, RATE)).toBe(2000);
  });

  test('delays what follows by as much as a request costs more than it was charged', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 5);
    pacer.settle({ charged: 5, actual: 8, result: 'read' }, 200, RATE);
    expect(pacer.delay(200, RATE)).toBeCloseTo(600, 9);
  });

  test('gives back what a request was charged too much', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 20);
    pacer.settle({ charged: 20, actual: 1, result: 'read' }, 50, RATE);
    expect(pacer.delay(50, RATE)).toBeCloseTo(50, 9);
  });

  test('gives back at most one charge more than is unpaid', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 20);
    pacer.take(2000, RATE, 20);
    for (let i = 0; i < 3; i += 1) pacer.settle({ charged: 20, actual: 0, result: 'read' }, 4000, RATE);
    pacer.take(4000, RATE, 30);
    expect(pacer.delay(4000, RATE)).toBeCloseTo(1000, 9);
  });

  test('keeps nothing for later of what is given back', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 20);
    pacer.settle({ charged: 20, actual: 0, result: 'read' }, 4000, RATE);
    pacer.take(5000, RATE, 15); // of the 20 units, 10 have gone in the idle second
    expect(pacer.delay(5000, RATE)).toBeCloseTo(500, 9);
    pacer.settle({ charged: 15, actual: 0, result: 'read' }, 6000, RATE);
    pacer.take(100_000, RATE, 30);
    expect(pacer.delay(100_000, RATE)).toBeCloseTo(3000, 9);
  });

  for (const result of ['unsent', 'cancelled'] as const) {
    test(`lets no second request pass at once because of one that was ${result}`, () => {
      const pacer = new Pacer();
      pacer.take(0, RATE, 20);
      pacer.settle({ charged: 20, actual: 0, result }, 1000, RATE);
      expect(pacer.delay(1000, RATE)).toBe(0);
      pacer.take(1000, RATE, 1);
      expect(pacer.delay(1000, RATE)).toBeCloseTo(100, 9);
    });
  }

  test('holds back the next request for a minute at most, whatever the last one has cost', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 999_999_999);
    expect(pacer.delay(0, RATE)).toBe(60_000);
  });

  test('waits for one request at a rate below one a minute', () => {
    const pacer = new Pacer();
    pacer.take(0, 0.01, 2);
    expect(pacer.delay(0, 0.01)).toBe(100_000);
  });

  test('does not begin the minute anew when a cost is settled within it', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 100_000);
    for (const now of [20_000, 40_000, 59_000]) pacer.settle({ charged: 5, actual: 100, result: 'read' }, now, RATE);
    expect(pacer.delay(59_000, RATE)).toBeCloseTo(1000, 6);
  });

  test('carries what a minute does not pay, so that several expensive requests in flight are paid for', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 1);
    for (let i = 0; i < 3; i += 1) pacer.settle({ charged: 1, actual: 501, result: 'read' }, 0, RATE); // 1501 units: 150 s
    const sends: number[] = [];
    for (let now = 0; sends.length < 4; ) {
      now += pacer.delay(now, RATE);
      pacer.take(now, RATE, 1);
      sends.push(Math.round(now / 100) / 10);
    }
    expect(sends).toEqual([60, 120, 150.3, 150.4]);
  });

  test('carries no more than ten minutes', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE);
    for (let i = 0; i < 1000; i += 1) pacer.settle({ charged: 1, actual: 1e9, result: 'read' }, 0, RATE);
    let now = 0;
    for (let i = 0; i < 20; i += 1) {
      now += pacer.delay(now, RATE);
      pacer.take(now, RATE);
    }
    expect(pacer.delay(now, RATE)).toBeCloseTo(100, 6);
  });

  test('pays what it carries in idle time, too', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 1);
    for (let i = 0; i < 3; i += 1) pacer.settle({ charged: 1, actual: 501, result: 'read' }, 0, RATE);
    pacer.take(200_000, RATE, 1);
    expect(pacer.delay(200_000, RATE)).toBeCloseTo(100, 6);
  });

  test('owes nothing at an unlimited rate', () => {
    const pacer = new Pacer();
    pacer.take(0, Number.POSITIVE_INFINITY, 5);
    pacer.settle({ charged: 5, actual: 500, result: 'read' }, 10, Number.POSITIVE_INFINITY);
    pacer.settle({ charged: 5, actual: 1, result: 'read' }, 10, Number.POSITIVE_INFINITY);
    expect(pacer.delay(10, Number.POSITIVE_INFINITY)).toBe(0);
    expect(pacer.delay(1000, RATE)).toBeLessThanOrEqual(60_000);
  });

  test('carries nothing over from an unlimited rate, whatever is settled there', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE);
    for (let i = 0; i < 12; i += 1) pacer.settle({ charged: 1, actual: 1e9, result: 'read' }, 0, RATE);
    expect(pacer.carried).toBe(6000);
    for (let i = 0; i < 2; i += 1) pacer.settle({ charged: 1, actual: 500, result: 'read' }, 10, Infinity);
    expect(pacer.carried).toBe(0);
    expect(pacer.delay(10, RATE)).toBeCloseTo(90, 9);
    for (const now of [20, 20, 30]) pacer.take(now, Infinity);
    pacer.settle({ charged: 1, actual: 500, result: 'read' }, 40, Infinity);
    expect(pacer.delay(40, RATE)).toBeCloseTo(90, 9);
  });

  test('pays nothing of what it carried before with a request at an unlimited rate', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE);
    for (let i = 0; i < 12; i += 1) pacer.settle({ charged: 1, actual: 1e9, result: 'read' }, 0, RATE);
    pacer.take(0, Infinity);
    expect(pacer.delay(0, RATE)).toBeCloseTo(100, 9);
    expect(pacer.carried).toBe(0);
  });

  test('lets one more request pass for what is given back late, and not a burst of cheap ones', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 500);
    pacer.settle({ charged: 500, actual: 1, result: 'read' }, 50_000, RATE);
    let sends = 0;
    for (; pacer.delay(50_000, RATE) <= 0; sends += 1) pacer.take(50_000, RATE, 1);
    expect(sends).toBeLessThanOrEqual(2);
  });

  test('sends by the actual costs where each request is charged too much, and its response comes late', () => {
    const pacer = new Pacer();
    const settlements: number[] = [];
    let sends = 0;
    for (let now = 0; now < 600_000; now += 100) {
      while ((settlements[0] ?? Infinity) <= now) {
        settlements.shift();
        pacer.settle({ charged: 100, actual: 2, result: 'read' }, now, RATE);
      }
      if (pacer.delay(now, RATE) > 0) continue;
      pacer.take(now, RATE, 100);
      settlements.push(now + 20_000);
      sends += 1;
    }
    expect(sends).toBeGreaterThan(500); // 60 by the charges alone, 3000 by the costs
    expect(sends).toBeLessThanOrEqual(3001);
  });

  test('spaces the first request at a rate by one unit, whatever the last one at an unlimited rate has cost', () => {
    const pacer = new Pacer();
    pacer.take(0, Infinity, 500);
    expect(pacer.delay(0, RATE)).toBe(100);
  });
});
