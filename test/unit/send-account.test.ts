import { describe, expect, test } from 'vitest';
import { SendAccount } from '../../src/core/rate/send-history.ts';

/** 10 buckets of 100 ms; one sent at each of these times. */
function accountOf(times: readonly number[]): SendAccount {
  const account = new SendAccount(100, 10);
  for (const now of times) account.sent(now);
  return account;
}

/** 10, 30, 50, … ms: 5 a bucket. */
const EVEN = Array.from({ length: 50 }, (_, i) => 10 + 20 * i);

describe('the account of sends', () => {
  test('tells the rate over a span that ends now', () => {
    const account = accountOf(EVEN);
    expect(account.sentRate(1000, 500)).toBe(50);
    expect(account.sentRate(1000, 100)).toBe(50);
    expect(account.acceptedRate(1000, 900)).toBe(50);
  });

  test('is not fooled by the bucket that has only begun', () => {
    const account = accountOf([...EVEN, 1010]);
    // From 900 on, where the span begins within a bucket: 6 in 120 ms.
    expect(account.sentRate(1020, 100)).toBeCloseTo(6 / 0.12, 9);
  });

  test('knows how long ago the first of a span was sent', () => {
    expect(accountOf([]).busyFor(1000, 900)).toBe(0);
    expect(accountOf([740, 990]).busyFor(1000, 900)).toBe(300); // 740 is in the bucket from 700 on
    expect(accountOf([740, 990]).busyFor(1000, 200)).toBe(100);
    expect(accountOf(EVEN).busyFor(1000, 900)).toBe(900);
    expect(accountOf([740]).busyFor(9000, 900)).toBe(0);
  });

  test('is exact over spans no longer than its buckets', () => {
    for (const end of [5000, 5020, 5400, 5980]) {
      const account = new SendAccount(1000, 16);
      for (let now = 10; now < end; now += 20) account.sent(now);
      expect(account.sentRate(end, 1000)).toBeCloseTo(50, 9);
    }
  });

  test('counts a rejection at the time its request left', () => {
    const account = accountOf(EVEN);
    account.rejected(150);
    account.rejected(950);
    account.rejected(950);
    expect(account.acceptedRate(1000, 100)).toBe(30);
    expect(account.acceptedRate(1000, 500)).toBe(46);
    expect(account.acceptedRate(1000, 900)).toBeCloseTo(50 - 3 / 0.9, 9);
    expect(account.sentRate(1000, 100)).toBe(50);
  });

  test('tells the highest rate over any span that is long enough, and ends now', () => {
    const burst = accountOf([510, 520, 530, 540, 550, 560, 810, 910]); // 6 in the bucket of 500, and one each in two others
    expect(burst.bestRate(1000, 500, 900)).toBe(16); // 8 in 500 ms; over longer ones it is less
    expect(burst.bestRate(1000, 100, 900)).toBe(16);
    expect(burst.bestRate(1000, 600, 900)).toBeCloseTo(8 / 0.6, 9);
    expect(burst.bestRate(1000, 100, 400)).toBe(10); // 2 in 200 ms
    expect(burst.bestRate(1050, 500, 900)).toBeCloseTo(8 / 0.55, 9); // of buckets as they are
    burst.rejected(520);
    burst.rejected(530);
    expect(burst.bestRate(1000, 500, 900)).toBe(12);
  });

  test('knows no best rate of what is forgotten, was rejected, or comes later', () => {
    expect(new SendAccount(100, 10).bestRate(1000, 100, 900)).toBe(0);
    expect(accountOf(EVEN).bestRate(5000, 100, 5000)).toBe(10); // 50 in 5 s: none is forgotten before another comes
    const turned = accountOf([...EVEN, 1950]);
    expect(turned.bestRate(2000, 100, Number.POSITIVE_INFINITY)).toBe(10);
    expect(accountOf([...EVEN, 1000, 1110]).bestRate(900, 500, 900)).toBe(60); // since 400, with those from 900 on: 30 in 500 ms
    const rejected = accountOf([810]);
    rejected.rejected(810);
    expect(rejected.bestRate(1000, 100, 900)).toBe(0);
  });

  test('tells what was accepted in those buckets in which something was rejected', () => {
    const account = accountOf(EVEN);
    expect(account.acceptedWhereRejected(999, 899)).toBeUndefined();
    account.rejected(150);
    account.rejected(350);
    account.rejected(350);
    expect(account.acceptedWhereRejected(999, 899)).toBe(35); // 4 and 3 in 200 ms
    expect(account.acceptedWhereRejected(999, 799)).toBe(30); // the bucket of 100 is out of it
    expect(account.acceptedWhereRejected(299, 199)).toBe(40);
    expect(account.acceptedWhereRejected(999, 599)).toBeUndefined();
    account.sent(1350); // the buckets of 100 and 300 are forgotten
    expect(account.acceptedWhereRejected(1399, 1299)).toBeUndefined();
  });

  test('forgets what is older than its span, rejections too', () => {
    const account = accountOf(EVEN);
    expect(account.span).toBe(900);
    account.rejected(990);
    account.sent(1850);
    expect(account.sentRate(1890, 900)).toBeCloseTo(6 / 0.99, 9); // of the bucket of 900, and this one
    account.sent(1950);
    expect(account.sentRate(2000, 900)).toBeCloseTo(2 / 0.9, 9);
    account.rejected(50);
    account.rejected(990);
    expect(account.acceptedRate(2000, 900)).toBeCloseTo(2 / 0.9, 9);
  });

  test('forgets all of it in a long pause', () => {
    const account = accountOf(EVEN);
    expect(account.sentRate(1_000_000, 900)).toBe(0);
    account.sent(1_000_000);
    expect(account.sentRate(1_000_000, 900)).toBeCloseTo(1 / 0.9, 9);
  });

  test('says that nothing was sent where nothing was', () => {
    const account = new SendAccount(100, 10);
    account.rejected(5);
    expect(account.sentRate(1000, 900)).toBe(0);
    expect(account.acceptedRate(1000, 900)).toBe(0);
  });

  test('works on a clock of any origin', () => {
    const account = new SendAccount(100, 10);
    for (const now of EVEN) account.sent(now - 700);
    expect(account.sentRate(300, 900)).toBe(50);
  });

  test.each([1000, 1049, 1050, 12_345, 999_999])('can be told of the time before %d', (now) => {
    for (const [width, count] of [
      [50, 24],
      [1000, 128],
    ] as const) {
      const account = new SendAccount(width, count);
      account.preload(now, 40);
      expect(account.acceptedRate(now, 1000)).toBeCloseTo(40, 4);
    }
  });
});
