import { expect, test } from 'vitest';
import { Tally } from '../../src/core/collections/counter-map.ts';

test('counts each for itself, and to none', () => {
  const tally = new Tally();
  tally.add('a');
  tally.add('a');
  tally.add('b');
  expect([tally.of('a'), tally.of('b'), tally.of('c')]).toEqual([2, 1, 0]);
  tally.remove('a');
  tally.remove('b');
  tally.remove('c');
  tally.remove('b');
  expect([tally.of('a'), tally.of('b'), tally.of('c')]).toEqual([1, 0, 0]);
  tally.add('b');
  expect(tally.of('b')).toBe(1);
});

test('forgets those at none, however many come and go', () => {
  const tally = new Tally();
  tally.add('stays');
  for (let i = 0; i < 10_000; i += 1) {
    tally.add(`${i}`);
    tally.remove(`${i}`);
    expect(tally.size).toBeLessThanOrEqual(259);
  }
  expect(tally.of('stays')).toBe(1);
});

test('counts as a Map that forgets at once does', () => {
  const tally = new Tally();
  const counts = new Map<string, number>();
  let seed = 1;
  const random = (below: number): number => {
    seed = (48_271 * seed) % 2_147_483_647;
    return seed % below;
  };
  for (let i = 0; i < 100_000; i += 1) {
    const key = `${random(700)}`;
    const count = counts.get(key) ?? 0;
    if (random(2) === 0) {
      tally.add(key);
      counts.set(key, count + 1);
    } else {
      tally.remove(key);
      if (count > 0) counts.set(key, count - 1);
    }
    expect(tally.of(key)).toBe(counts.get(key) ?? 0);
  }
  for (const [key, count] of counts) expect(tally.of(key)).toBe(count);
  const above = [...counts.values()].filter((count) => count > 0).length;
  expect(tally.size).toBeLessThanOrEqual(257 + 2 * above);
});
