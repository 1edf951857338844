import { describe, expect, test } from 'vitest';
import { RetryTokenBucket } from '../../../src/core/retry/retry-token-bucket.ts';

function spendAll(budget: RetryTokenBucket): number {
  let spent = 0;
  while (budget.spend()) spent += 1;
  return spent;
}

describe('the retry budget', () => {
  test('starts full, and denies retries when it is spent', () => {
    const budget = new RetryTokenBucket({ ratio: 0.2, burst: 10 });
    expect(budget.left).toBe(1);
    expect(spendAll(budget)).toBe(10);
    expect(budget.left).toBe(0);
    expect(budget.spend()).toBe(false);
  });

  test('earns one retry for five successes', () => {
    const budget = new RetryTokenBucket({ ratio: 0.25, burst: 10 });
    spendAll(budget);
    for (let success = 1; success <= 3; success += 1) budget.earn();
    expect(budget.spend()).toBe(false);
    budget.earn();
    expect(budget.spend()).toBe(true);
    expect(budget.spend()).toBe(false);
  });

  test('saves up no more than its burst, and a refund adds nothing to a full one', () => {
    const budget = new RetryTokenBucket({ ratio: 0.5, burst: 3 });
    for (let success = 1; success <= 100; success += 1) budget.earn();
    budget.refund();
    expect(spendAll(budget)).toBe(3);
  });

  test('is refunded for unused retries', () => {
    const budget = new RetryTokenBucket({ ratio: 0, burst: 2 });
    spendAll(budget);
    budget.refund();
    expect(budget.left).toBe(0.5);
    expect(spendAll(budget)).toBe(1);
  });

  test('of zero allows no retry', () => {
    const budget = new RetryTokenBucket({ ratio: 1, burst: 0 });
    budget.earn();
    expect(budget.spend()).toBe(false);
    expect(budget.left).toBe(0);
  });

  test('keeps its balance when its settings change, up to the new burst', () => {
    const budget = new RetryTokenBucket({ ratio: 0, burst: 4 });
    budget.spend();
    budget.adjust({ ratio: 0, burst: 12 });
    expect(budget.left).toBe(0.25);
    budget.adjust({ ratio: 0.5, burst: 2 });
    expect(spendAll(budget)).toBe(2);
    budget.earn();
    expect(budget.left).toBe(0.25);
  });

  test('is spent when it does not pay for one more retry, unless it allows none at all', () => {
    const budget = new RetryTokenBucket({ ratio: 0.5, burst: 2 });
    expect(budget.isSpent).toBe(false);
    budget.spend();
    expect(budget.isSpent).toBe(false);
    budget.spend();
    expect(budget.isSpent).toBe(true);
    budget.earn();
    expect(budget.isSpent).toBe(true);
    budget.earn();
    expect(budget.isSpent).toBe(false);
    expect(new RetryTokenBucket({ ratio: 0.5, burst: 0 }).isSpent).toBe(false);
  });
});
