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
    pacer.settle(5, 8, 200, RATE);
    expect(pacer.delay(200, RATE)).toBeCloseTo(600, 9);
  });

  test('gives back what a request was charged too much', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 20);
    pacer.settle(20, 1, 50, RATE);
    expect(pacer.delay(50, RATE)).toBeCloseTo(50, 9);
  });

  test('keeps for later at most one charge of what is given back, and nothing of idle time', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 20);
    pacer.take(2000, RATE, 20);
    pacer.settle(20, 0, 4000, RATE);
    pacer.settle(20, 0, 4000, RATE);
    pacer.take(100_000, RATE, 30);
    expect(pacer.delay(100_000, RATE)).toBeCloseTo(1000, 9);
  });

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
    for (const now of [20_000, 40_000, 59_000]) pacer.settle(5, 100, now, RATE);
    expect(pacer.delay(59_000, RATE)).toBeCloseTo(1000, 6);
  });

  test('carries what a minute does not pay, so that several expensive requests in flight are paid for', () => {
    const pacer = new Pacer();
    pacer.take(0, RATE, 1);
    for (let i = 0; i < 3; i += 1) pacer.settle(1, 501, 0, RATE); // 1501 units: 150 s
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
    for (let i = 0; i < 1000; i += 1) pacer.settle(1, 1e9, 0, RATE);
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
    for (let i = 0; i < 3; i += 1) pacer.settle(1, 501, 0, RATE);
    pacer.take(200_000, RATE, 1);
    expect(pacer.delay(200_000, RATE)).toBeCloseTo(100, 6);
  });

  test('owes nothing at an unlimited rate', () => {
    const pacer = new Pacer();
    pacer.take(0, Number.POSITIVE_INFINITY, 5);
    pacer.settle(5, 500, 10, Number.POSITIVE_INFINITY);
    pacer.settle(5, 1, 10, Number.POSITIVE_INFINITY);
    expect(pacer.delay(10, Number.POSITIVE_INFINITY)).toBe(0);
    expect(pacer.delay(1000, RATE)).toBeLessThanOrEqual(60_000);
  });
});
