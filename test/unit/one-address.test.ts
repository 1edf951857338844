/** What many keys of one address take from others: no more than one key would. */
import { describe, expect, test } from 'vitest';
import { limitedTo, World } from '../support/policy.ts';

describe('an address with many keys', () => {
  test('does not push further away what others are told', () => {
    const toldTo = (keys: number): number => {
      const world = new World({
        upstream: { ...limitedTo(10), queue: { maxWait: 0, maxDepth: 100 } },
        random: () => 0.5,
      });
      for (let at = 0; at < 2000; at += 100) {
        world.at(at, () => {
          for (let i = 0; i < keys; i += 1) world.arrive({ client: `${at}/${i}`, nest: 'here' });
          for (const other of ['b', 'c', 'd']) world.arrive({ client: other, nest: other });
        });
      }
      world.runUntil(1950);
      const { told } = world.arrive({ client: 'e', nest: 'e' });
      return told?.kind === 'refused' ? told.retryAfter : Number.NaN;
    };
    expect(toldTo(40)).toBeLessThan(toldTo(1) + 3000);
  });

  test('has the share of one key, also while its keys only wait', () => {
    const servedOf = (keys: number): number => {
      const world = new World({
        upstream: { ...limitedTo(40), queue: { maxWait: 30_000, maxDepth: 10_000 } },
        random: () => 0.5,
      });
      for (let i = 0; i < 600; i += 1) world.arrive({ client: `k${i % keys}`, nest: 'here', deadline: 60_000 });
      world.runUntil(6000);
      const honest = Array.from({ length: 200 }, () => world.arrive({ client: 'o', nest: 'there', deadline: 60_000 }));
      world.runUntil(9000);
      return honest.filter(({ told }) => told?.kind === 'admitted').length;
    };
    expect(servedOf(1)).toBeGreaterThan(50);
    expect(servedOf(200)).toBeGreaterThan(50);
  });

  test('leaves places in the queue', () => {
    const world = new World({ upstream: { ...limitedTo(1000), queue: { maxWait: 10_000, maxDepth: 90 } } });
    const own = Array.from({ length: 200 }, (_, i) => world.arrive({ client: `k${i}`, nest: 'here' }).told);
    expect(own.filter((told) => told === undefined)).toHaveLength(80);
    expect(own.at(-1)).toMatchObject({ kind: 'refused', why: 'queue_full' });
    const others = Array.from({ length: 12 }, (_, i) => world.arrive({ client: `o${i}`, nest: `there ${i}` }).told);
    expect(others.filter((told) => told === undefined)).toHaveLength(10);
    expect(others.at(-1)).toMatchObject({ kind: 'refused', why: 'queue_full' });
    world.runUntil(1000);
    expect(world.arrive({ client: 'k', nest: 'here' }).told).toMatchObject({ kind: 'admitted' });
  });
});
