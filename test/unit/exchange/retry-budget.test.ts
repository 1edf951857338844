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

  test('is refunded for retries that were not sent', () => {
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

  test('counts as spent while it is less than one retry, unless it allows none at all', () => {
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

  test('leaves a part to other clients, whatever one client does', () => {
    const budget = new RetryTokenBucket({ ratio: 0.25, burst: 10 });
    const spend = (client: string, now: number, most = 100): number => {
      let spent = 0;
      while (spent < most && budget.spend(client, now)) spent += 1;
      return spent;
    };
    budget.earn('calm', 0);
    expect(spend('busy', 0)).toBe(5);
    expect(spend('calm', 0, 2)).toBe(2);
    expect(spend('busy', 0)).toBe(0);
    // Eight successes earn back two tokens of `busy`: three are spent, and five are left.
    for (let success = 1; success <= 8; success += 1) budget.earn('busy', 0);
    expect(spend('busy', 0)).toBe(1);
    expect(spend('calm', 0)).toBe(1);
    expect(spend('third', 0)).toBe(2);
  });

  test('is for one client alone while no other is active', () => {
    const budget = new RetryTokenBucket({ ratio: 1, burst: 10 });
    for (let i = 1; i <= 10; i += 1) expect(budget.spend('only', 0)).toBe(true);
    for (let i = 1; i <= 10; i += 1) budget.earn('only', 0);
    budget.earn('other', 0);
    for (let i = 1; i <= 5; i += 1) expect(budget.spend('only', 1)).toBe(true);
    expect(budget.spend('only', 10_000)).toBe(false);
    expect(budget.spend('only', 10_001)).toBe(true);
  });

  test('keeps retries for those who earn them, beside many clients that always fail', () => {
    const budget = new RetryTokenBucket({ ratio: 0.2, burst: 10 });
    let refused = 0;
    for (let i = 0; i < 2000; i += 1) {
      for (let j = 0; j < 12; j += 1) budget.spend(`failing ${j}`, i);
      const client = `client ${i % 11}`;
      const isFailed = i % 10 === 9; // each client has a failure now and then
      if (!isFailed) budget.earn(client, i);
      else if (!budget.spend(client, i)) refused += 1;
    }
    expect(refused).toBeLessThan(4); // of 200
  });

  /** A full budget of 10 of which others have spent 6. `first` has earned, and after it others have, so often. */
  function afterSpending(otherSuccesses: number): RetryTokenBucket {
    const budget = new RetryTokenBucket({ ratio: 0.2, burst: 10 });
    budget.earn('first', 0);
    for (let i = 0; i < otherSuccesses; i += 1) budget.earn(`client ${i % 10}`, i);
    const spent = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => budget.spend(`failing ${i % 4}`, 100));
    expect(spent).toEqual([true, true, true, true, true, true, false, false]);
    return budget;
  }

  test('leaves the upper half to clients that have earned nothing, and all of it while nobody has', () => {
    expect(afterSpending(20).left).toBe(0.4);
    const unearned = new RetryTokenBucket({ ratio: 0.2, burst: 10 });
    const spent = Array.from({ length: 10 }, (_, i) => unearned.spend(`client ${i}`, i));
    expect(spent.every(Boolean)).toBe(true);
  });

  test('knows who earned the last successes, as many as fill it', () => {
    expect(afterSpending(49).spend('first', 100)).toBe(true);
    expect(afterSpending(50).spend('first', 100)).toBe(false);
    expect(afterSpending(120).spend('client 9', 100)).toBe(true);
  });

  test('knows who earned the last hundred successes, if more fill it', () => {
    const spendsAfter = (otherSuccesses: number): boolean => {
      const budget = new RetryTokenBucket({ ratio: 0.01, burst: 4 });
      budget.earn('first', 0);
      for (let i = 0; i < otherSuccesses; i += 1) budget.earn('other', i);
      for (let i = 0; i < 3; i += 1) budget.spend(`failing ${i}`, 200);
      return budget.spend('first', 200);
    };
    expect([99, 100].map(spendsAfter)).toEqual([true, false]);
  });

  test('refunds the client that spent it', () => {
    const budget = new RetryTokenBucket({ ratio: 0, burst: 4 });
    budget.earn('other', 0);
    for (let i = 1; i <= 2; i += 1) expect(budget.spend('busy', 0)).toBe(true);
    expect(budget.spend('busy', 0)).toBe(false);
    budget.refund('busy');
    expect(budget.spend('busy', 0)).toBe(true);
    expect(budget.left).toBe(0.5);
  });

  test('refunds the last of its retries, and none of another client', () => {
    const budget = new RetryTokenBucket({ ratio: 0, burst: 4 });
    expect(budget.spend('first', 0)).toBe(true);
    expect(budget.spend('second', 0)).toBe(true);
    budget.refund('second');
    // Three are left: `second` has spent none of them, and may spend two beside `first`.
    expect([1, 2, 3].map(() => budget.spend('second', 0))).toEqual([true, true, false]);
  });

  test('forgets what a client has spent once successes have earned it back', () => {
    const budget = new RetryTokenBucket({ ratio: 0.5, burst: 3 });
    budget.earn('other', 0);
    expect([1, 2, 3].map(() => budget.spend('client', 0))).toEqual([true, true, false]);
    for (let success = 1; success <= 4; success += 1) budget.earn('other', 0);
    expect([1, 2, 3].map(() => budget.spend('client', 0))).toEqual([true, true, false]);
  });
});
