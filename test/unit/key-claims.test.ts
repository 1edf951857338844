import { describe, expect, test } from 'vitest';
import type { Claimant } from '../../src/core/idempotency/key-claims.ts';
import { KeyClaims } from '../../src/core/idempotency/key-claims.ts';

/** Writes down who was told, in order. */
function claimants(told: string[]): (name: string) => Claimant {
  return (name) => ({ holder: name, client: name, onClaimed: () => told.push(name) });
}

describe('a key', () => {
  test('is held by one at a time, and another key by another', () => {
    const claims = new KeyClaims();
    expect([claims.take('a'), claims.take('a'), claims.take('b')]).toEqual([true, false, true]);
    claims.release('a');
    expect([claims.take('b'), claims.take('a')]).toEqual([false, true]);
  });

  test('goes to those who wait, one after the other, in the order in which they came', () => {
    const told: string[] = [];
    const waiting = claimants(told);
    const claims = new KeyClaims();
    claims.take('a');
    for (const name of ['first', 'second', 'third']) expect(claims.wait('a', waiting(name))).toBe(true);
    expect(told).toEqual([]);
    claims.release('a');
    expect([told, claims.take('a')]).toEqual([['first'], false]);
    claims.release('a');
    claims.release('a');
    expect(told).toEqual(['first', 'second', 'third']);
    claims.release('a');
    expect([claims.size, claims.bound.used]).toEqual([0, 0]);
  });

  test('is not given to who has left; to leave twice, or a key that nobody waits for, does no harm', () => {
    const told: string[] = [];
    const waiting = claimants(told);
    const [first, second] = [waiting('first'), waiting('second')];
    const claims = new KeyClaims();
    claims.take('a');
    claims.wait('a', first);
    claims.wait('a', second);
    claims.leave('a', first);
    claims.leave('a', first);
    claims.leave('b', second);
    claims.release('a');
    expect(told).toEqual(['second']);
    claims.release('a');
    expect([claims.size, claims.bound.used]).toEqual([0, 0]);
  });

  test('goes on however many end within the call that gives it to them', () => {
    const claims = new KeyClaims(20_000, 20_000);
    let served = 0;
    claims.take('a');
    for (let i = 0; i < 20_000; i += 1) {
      claims.wait('a', {
        holder: `${i}`,
        client: `${i}`,
        onClaimed: () => {
          served += 1;
          claims.release('a');
        },
      });
      if (i % 1000 === 0) claims.take(`other ${i}`);
    }
    claims.release('a');
    expect([served, claims.bound.used, claims.size]).toEqual([20_000, 0, 20]);
  });

  test('is waited for by one address in so many places that others still find one', () => {
    const claims = new KeyClaims(90, 1000);
    claims.take('a');
    const wait = (holder: string): boolean => claims.wait('a', { holder, client: holder, onClaimed: () => undefined });
    expect(Array.from({ length: 200 }, () => wait('here')).filter(Boolean)).toHaveLength(80);
    expect([wait('there'), wait('here')]).toEqual([true, false]);
  });

  test('is waited for by so many that others still find a place', () => {
    const waiting = claimants([]);
    const claims = new KeyClaims();
    claims.take('a');
    claims.take('b');
    const got = Array.from({ length: 1100 }, (_, i) => claims.wait('a', waiting(String(i)))).filter(Boolean).length;
    expect([got, claims.wait('b', waiting('other')), claims.bound.reached]).toEqual([16, true, 1084]);
    claims.release('a');
    expect(claims.wait('a', waiting('late'))).toBe(true);
  });

  test('is waited for by so many in all, and that is told', () => {
    const waiting = claimants([]);
    const claims = new KeyClaims(2);
    claims.take('a');
    claims.take('b');
    expect([claims.wait('a', waiting('1')), claims.wait('b', waiting('2')), claims.wait('b', waiting('3'))]).toEqual([
      true,
      true,
      false,
    ]);
    expect(claims.bound).toEqual({ name: 'key_waits', used: 1, reached: 1 });
    claims.release('a');
    expect(claims.wait('b', waiting('4'))).toBe(true);
  });
});
