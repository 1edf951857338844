import { expect, test } from 'vitest';
import { AwaitedReturns } from '../../../src/core/limits/awaited-returns.ts';

function count(maxClients?: number): { readonly returns: AwaitedReturns; readonly firsts: () => number } {
  let firsts = 0;
  const returns = new AwaitedReturns(() => {
    firsts += 1;
  }, maxClients);
  return { returns, firsts: () => firsts };
}

test('a client counts once, with its last weight, until the later of its return times', () => {
  const { returns } = count();
  returns.add('a', 1, 5000, 0);
  returns.add('b', 2, 3000, 0);
  returns.add('a', 4, 1000, 0);
  expect(returns.totalWeight(0)).toBe(6);
  expect(returns.totalWeight(3000)).toBe(6);
  expect(returns.totalWeight(3001)).toBe(4);
  expect(returns.totalWeight(5000)).toBe(4);
  expect(returns.totalWeight(5001)).toBe(0);
});

test('a client that has returned no longer counts', () => {
  const { returns } = count();
  returns.add('a', 0.1, 5000, 0);
  returns.add('b', 0.2, 5000, 0);
  returns.remove('b');
  returns.remove('unknown');
  expect(returns.totalWeight(0)).toBeCloseTo(0.1, 12);
  returns.remove('a');
  expect(returns.totalWeight(0)).toBe(0);
});

test('a callback reports each time that a client counts and none counted before', () => {
  const { returns, firsts } = count();
  returns.add('a', 1, 1000, 0);
  returns.add('b', 1, 1000, 0);
  expect(firsts()).toBe(1);
  returns.add('a', 1, 3000, 2000);
  expect(firsts()).toBe(2);
});

test('clients beyond the maximum number do not count', () => {
  const { returns } = count(2);
  for (const client of ['a', 'b', 'c']) returns.add(client, 1, 1000, 0);
  expect(returns.totalWeight(0)).toBe(2);
  returns.remove('a');
  returns.add('c', 1, 1000, 0);
  expect(returns.totalWeight(0)).toBe(2);
});
