import { expect, test } from 'vitest';
import { CounterMap } from '../../../src/core/collections/counter-map.ts';

test('counts each key separately, down to zero', () => {
  const tally = new CounterMap();
  tally.increment('a');
  tally.increment('a');
  tally.increment('b');
  expect([tally.count('a'), tally.count('b'), tally.count('c')]).toEqual([2, 1, 0]);
  expect(['a', 'b', 'c', 'b'].map((key) => tally.decrement(key))).toEqual([1, 0, 0, 0]);
  expect([tally.count('a'), tally.count('b'), tally.count('c')]).toEqual([1, 0, 0]);
  tally.increment('b');
  expect(tally.count('b')).toBe(1);
});

test('removes keys at zero, however many come and go', () => {
  const tally = new CounterMap();
  tally.increment('stays');
  for (let i = 0; i < 10_000; i += 1) {
    tally.increment(`${i}`);
    tally.decrement(`${i}`);
    expect(tally.size).toBeLessThanOrEqual(259);
  }
  expect(tally.count('stays')).toBe(1);
});

test('counts as a Map does from which keys at zero are removed', () => {
  const tally = new CounterMap();
  const counts = new Map<string, number>();
  const wrong: string[] = [];
  let seed = 1;
  const random = (below: number): number => {
    seed = (48_271 * seed) % 2_147_483_647;
    return seed % below;
  };
  for (let i = 0; i < 100_000; i += 1) {
    const key = `${random(700)}`;
    const count = counts.get(key) ?? 0;
    if (random(2) === 0) {
      tally.increment(key);
      counts.set(key, count + 1);
    } else {
      tally.decrement(key);
      if (count > 0) counts.set(key, count - 1);
    }
    if (tally.count(key) !== (counts.get(key) ?? 0)) wrong.push(`${i}: ${key}`);
  }
  expect(wrong).toEqual([]);
  for (const [key, count] of counts) expect(tally.count(key)).toBe(count);
  const above = [...counts.values()].filter((count) => count > 0).length;
  expect(tally.size).toBeLessThanOrEqual(257 + 2 * above);
});
