import { describe, expect, test } from 'vitest';
import { Nests } from '../../src/core/admission/address-groups.ts';
import type { Standing } from '../support/policy.ts';
import { limitedTo, World } from '../support/policy.ts';

const NEVER = Number.NEGATIVE_INFINITY;

describe('clients behind an address', () => {
  test('are counted once a window of two seconds, in this one or the last', () => {
    const nests = new Nests();
    expect(nests.clients('a', 100)).toBe(1);
    nests.note('a', 100, NEVER);
    nests.note('a', 200, NEVER);
    nests.note('a', 300, 100); // seen in this window already
    nests.note('b', 300, NEVER);
    expect(nests.clients('a', 400)).toBe(2);
    expect(nests.clients('b', 400)).toBe(1);
    nests.note('a', 2100, 300);
    expect(nests.clients('a', 2200)).toBe(2);
    expect(nests.clients('a', 4200)).toBe(1);
    expect(nests.clients('a', 8200)).toBe(1);
  });
});

describe('a new key for each request', () => {
  /** 50 a second; five clients ask for 8 each from addresses of their own, one asks for 400 under ever new keys. */
  function successOfTheFive(nested: boolean): number {
    const world = new World({ random: () => 0.5, upstream: limitedTo(50) });
    const five: Standing[] = [];
    for (let at = 0; at < 10_000; at += 2.5) {
      world.runUntil(at);
      world.arrive({ client: `new-${at}`, ...(nested ? { nest: 'flooder' } : {}) });
      if (at % 25 === 0) five.push(world.arrive({ client: `steady-${(at / 25) % 5}`, nest: `home-${(at / 25) % 5}` }));
    }
    world.runUntil(12_000);
    return five.filter(({ told }) => told?.kind === 'admitted').length / five.length;
  }

  test('buys nothing where keys nest in their address: they divide its one share', () => {
    expect(successOfTheFive(true)).toBeGreaterThan(0.97);
  });

  test('would cost the others if each key had a share of its own', () => {
    expect(successOfTheFive(false)).toBeLessThan(0.8);
  });
});
