import { describe, expect, test } from 'vitest';
import { SendHistory } from '../../../src/core/rate/send-history.ts';

/** 10 buckets of 100 ms, with one send at each of these times. */
function accountOf(times: readonly number[]): SendHistory {
  const account = new SendHistory(100, 10);
  for (const now of times) account.onSent(now);
  return account;
}

/** 10, 30, 50, … ms: 5 a bucket. */
const EVEN = Array.from({ length: 50 }, (_, i) => 10 + 20 * i);

describe('the send history', () => {
  test('returns the rate over a span that ends now', () => {
    const account = accountOf(EVEN);
    expect(account.sentRate(1000, 500)).toBe(50);
    expect(account.sentRate(1000, 100)).toBe(50);
    expect(account.acceptedRate(1000, 900)).toBe(50);
  });

  test('is not distorted by a bucket that has only begun', () => {
    const account = accountOf([...EVEN, 1010]);
    // From 900 on, where the span begins within a bucket: 6 in 120 ms.
    expect(account.sentRate(1020, 100)).toBeCloseTo(6 / 0.12, 9);
  });

  test('returns the age of the first send of a span', () => {
    expect(accountOf([]).activeFor(1000, 900)).toBe(0);
    expect(accountOf([740, 990]).activeFor(1000, 900)).toBe(300); // 740 is in the bucket from 700 on
    expect(accountOf([740, 990]).activeFor(1000, 200)).toBe(100);
    expect(accountOf(EVEN).activeFor(1000, 900)).toBe(900);
    expect(accountOf([740]).activeFor(9000, 900)).toBe(0);
  });

  test('is exact over spans no longer than its buckets', () => {
    for (const end of [5000, 5020, 5400, 5980]) {
      const account = new SendHistory(1000, 16);
      for (let now = 10; now < end; now += 20) account.onSent(now);
      expect(account.sentRate(end, 1000)).toBeCloseTo(50, 9);
    }
  });

  test('counts a rejection at the time its request was sent', () => {
    const account = accountOf(EVEN);
    account.onRejected(150);
    account.onRejected(950);
    account.onRejected(950);
    expect(account.acceptedRate(1000, 100)).toBe(30);
    expect(account.acceptedRate(1000, 500)).toBe(46);
    expect(account.acceptedRate(1000, 900)).toBeCloseTo(50 - 3 / 0.9, 9);
    expect(account.sentRate(1000, 100)).toBe(50);
  });

  test('returns the highest rate over any span that is long enough and ends now', () => {
    const burst = accountOf([510, 520, 530, 540, 550, 560, 810, 910]); // 6 in the bucket of 500, and one each in two others
    expect(burst.bestRate(1000, 500, 900)).toBe(16); // 8 in 500 ms; over longer ones it is less
    expect(burst.bestRate(1000, 100, 900)).toBe(16);
    expect(burst.bestRate(1000, 600, 900)).toBeCloseTo(8 / 0.6, 9);
    expect(burst.bestRate(1000, 100, 400)).toBe(10); // 2 in 200 ms
    expect(burst.bestRate(1050, 500, 900)).toBeCloseTo(8 / 0.55, 9); // whole buckets
    burst.onRejected(520);
    burst.onRejected(530);
    expect(burst.bestRate(1000, 500, 900)).toBe(12);
  });

  test('excludes what is expired, rejected or later from the best rate', () => {
    expect(new SendHistory(100, 10).bestRate(1000, 100, 900)).toBe(0);
    expect(accountOf(EVEN).bestRate(5000, 100, 5000)).toBe(10); // 50 in 5 s: none expires before another is added
    const turned = accountOf([...EVEN, 1950]);
    expect(turned.bestRate(2000, 100, Number.POSITIVE_INFINITY)).toBe(10);
    expect(accountOf([...EVEN, 1000, 1110]).bestRate(900, 500, 900)).toBe(60); // since 400, with those from 900 on: 30 in 500 ms
    const rejected = accountOf([810]);
    rejected.onRejected(810);
    expect(rejected.bestRate(1000, 100, 900)).toBe(0);
  });

  test('returns what was accepted in the buckets with rejections', () => {
    const account = accountOf(EVEN);
    expect(account.acceptedWhereRejected(999, 899)).toBeUndefined();
    account.onRejected(150);
    account.onRejected(350);
    account.onRejected(350);
    expect(account.acceptedWhereRejected(999, 899)).toBe(35); // 4 and 3 in 200 ms
    expect(account.acceptedWhereRejected(999, 799)).toBe(30); // the bucket of 100 is outside
    expect(account.acceptedWhereRejected(299, 199)).toBe(40);
    expect(account.acceptedWhereRejected(999, 599)).toBeUndefined();
    account.onSent(1350); // the buckets of 100 and 300 are expired
    expect(account.acceptedWhereRejected(1399, 1299)).toBeUndefined();
  });

  test('drops what is older than its span, including rejections', () => {
    const account = accountOf(EVEN);
    expect(account.span).toBe(900);
    account.onRejected(990);
    account.onSent(1850);
    expect(account.sentRate(1890, 900)).toBeCloseTo(6 / 0.99, 9); // from the bucket of 900, and this one
    account.onSent(1950);
    expect(account.sentRate(2000, 900)).toBeCloseTo(2 / 0.9, 9);
    account.onRejected(50);
    account.onRejected(990);
    expect(account.acceptedRate(2000, 900)).toBeCloseTo(2 / 0.9, 9);
  });

  test('drops everything during a long pause', () => {
    const account = accountOf(EVEN);
    expect(account.sentRate(1_000_000, 900)).toBe(0);
    account.onSent(1_000_000);
    expect(account.sentRate(1_000_000, 900)).toBeCloseTo(1 / 0.9, 9);
  });

  test('reports no sends if there were none', () => {
    const account = new SendHistory(100, 10);
    account.onRejected(5);
    expect(account.sentRate(1000, 900)).toBe(0);
    expect(account.acceptedRate(1000, 900)).toBe(0);
  });

  test('works on a clock of any origin', () => {
    const account = new SendHistory(100, 10);
    for (const now of EVEN) account.onSent(now - 700);
    expect(account.sentRate(300, 900)).toBe(50);
  });

  test.each([1000, 1049, 1050, 12_345, 999_999])('accepts records of past sends: %d', (now) => {
    for (const [width, count] of [
      [50, 24],
      [1000, 128],
    ] as const) {
      const account = new SendHistory(width, count);
      account.preload(now, 40);
      expect(account.acceptedRate(now, 1000)).toBeCloseTo(40, 4);
    }
  });
});
