import { describe, expect, test } from 'vitest';
import type { KeyClaimant } from '../../../src/core/idempotency/key-claims.ts';
import { KeyClaims } from '../../../src/core/idempotency/key-claims.ts';

/** Records the order in which claimants are notified. */
function claimants(notified: string[]): (name: string) => KeyClaimant {
  return (name) => ({ fairnessKey: name, client: name, onClaimed: () => notified.push(name) });
}

describe('a key', () => {
  test('is held by one exchange at a time, independently of other keys', () => {
    const claims = new KeyClaims();
    expect([claims.tryAcquire('a'), claims.tryAcquire('a'), claims.tryAcquire('b')]).toEqual([true, false, true]);
    claims.release('a');
    expect([claims.tryAcquire('b'), claims.tryAcquire('a')]).toEqual([false, true]);
  });

  test('passes to the waiting exchanges, one after the other, in order of arrival', () => {
    const notified: string[] = [];
    const waiting = claimants(notified);
    const claims = new KeyClaims();
    claims.tryAcquire('a');
    for (const name of ['first', 'second', 'third']) expect(claims.enqueue('a', waiting(name))).toBe(true);
    expect(notified).toEqual([]);
    claims.release('a');
    expect([notified, claims.tryAcquire('a')]).toEqual([['first'], false]);
    claims.release('a');
    claims.release('a');
    expect(notified).toEqual(['first', 'second', 'third']);
    claims.release('a');
    expect([claims.size, claims.bound.used]).toEqual([0, 0]);
  });

  test('is not granted to an exchange that has left, and a second departure has no effect', () => {
    const notified: string[] = [];
    const waiting = claimants(notified);
    const [first, second] = [waiting('first'), waiting('second')];
    const claims = new KeyClaims();
    claims.tryAcquire('a');
    claims.enqueue('a', first);
    claims.enqueue('a', second);
    claims.cancelWait('a', first);
    claims.cancelWait('a', first);
    claims.cancelWait('b', second);
    claims.release('a');
    expect(notified).toEqual(['second']);
    claims.release('a');
    expect([claims.size, claims.bound.used]).toEqual([0, 0]);
  });

  test('is passed on, however many exchanges end within the call that grants it', () => {
    // Twice as many as overflow the stack if each grant is a call within the release of the last. Each enqueue copies the queue.
    const count = 10_000;
    const claims = new KeyClaims(count, count);
    let served = 0;
    claims.tryAcquire('a');
    for (let i = 0; i < count; i += 1) {
      claims.enqueue('a', {
        fairnessKey: `${i}`,
        client: `${i}`,
        onClaimed: () => {
          served += 1;
          claims.release('a');
        },
      });
      if (i % 1000 === 0) claims.tryAcquire(`other ${i}`);
    }
    claims.release('a');
    expect([served, claims.bound.used, claims.size]).toEqual([count, 0, 10]);
  });

  test('bounds the waiting requests of one address, so that others find a place', () => {
    const claims = new KeyClaims(90, 1000);
    claims.tryAcquire('a');
    const wait = (holder: string): boolean =>
      claims.enqueue('a', { fairnessKey: holder, client: holder, onClaimed: () => undefined });
    expect(Array.from({ length: 200 }, () => wait('here')).filter(Boolean)).toHaveLength(80);
    expect([wait('there'), wait('here')]).toEqual([true, false]);
  });

  test('bounds the waiting requests for itself, so that those for others find a place', () => {
    const waiting = claimants([]);
    const claims = new KeyClaims();
    claims.tryAcquire('a');
    claims.tryAcquire('b');
    const got = Array.from({ length: 1100 }, (_, i) => claims.enqueue('a', waiting(String(i)))).filter(Boolean).length;
    expect([got, claims.enqueue('b', waiting('other')), claims.bound.reached]).toEqual([16, true, 1084]);
    claims.release('a');
    expect(claims.enqueue('a', waiting('late'))).toBe(true);
  });

  test('bounds all waiting requests, and reports their number', () => {
    const waiting = claimants([]);
    const claims = new KeyClaims(2);
    claims.tryAcquire('a');
    claims.tryAcquire('b');
    expect([
      claims.enqueue('a', waiting('1')),
      claims.enqueue('b', waiting('2')),
      claims.enqueue('b', waiting('3')),
    ]).toEqual([true, true, false]);
    expect(claims.bound).toEqual({ name: 'key_waits', used: 1, reached: 1 });
    claims.release('a');
    expect(claims.enqueue('b', waiting('4'))).toBe(true);
  });
});
