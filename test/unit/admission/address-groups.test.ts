import { describe, expect, test } from 'vitest';
import { AddressGroups } from '../../../src/core/admission/address-groups.ts';
import type { QueuedTicket } from '../../support/core/call-record.ts';
import { limitedTo } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const NEVER = Number.NEGATIVE_INFINITY;

describe('clients behind an address', () => {
  test('are counted once per two-second window, the current or the previous one', () => {
    const groups = new AddressGroups();
    expect(groups.activeClients('a', 100)).toBe(1);
    groups.onArrival('a', 100, NEVER);
    groups.onArrival('a', 200, NEVER);
    groups.onArrival('a', 300, 100); // already seen in this window
    groups.onArrival('b', 300, NEVER);
    expect(groups.activeClients('a', 400)).toBe(2);
    expect(groups.activeClients('b', 400)).toBe(1);
    groups.onArrival('a', 2100, 300);
    expect(groups.activeClients('a', 2200)).toBe(2);
    expect(groups.activeClients('a', 4200)).toBe(1);
    expect(groups.activeClients('a', 8200)).toBe(1);
  });
});

describe('a new key for each request', () => {
  /** 50 a second; five clients send 8 each from addresses of their own, one sends 400 under ever new keys. */
  function successOfTheFive(nested: boolean): number {
    const world = new World({ random: () => 0.5, upstream: limitedTo(50) });
    const five: QueuedTicket[] = [];
    for (let at = 0; at < 10_000; at += 2.5) {
      world.runUntil(at);
      world.arrive({ client: `new-${at}`, ...(nested ? { addressGroup: 'flooder' } : {}) });
      if (at % 25 === 0) {
        five.push(world.arrive({ client: `steady-${(at / 25) % 5}`, addressGroup: `home-${(at / 25) % 5}` }));
      }
    }
    world.runUntil(12_000);
    return five.filter(({ admission }) => admission?.kind === 'admitted').length / five.length;
  }

  test('gains nothing where keys are grouped by address: they divide its one share', () => {
    expect(successOfTheFive(true)).toBeGreaterThan(0.97);
  });

  test('would cost the other clients if each key had a share of its own', () => {
    expect(successOfTheFive(false)).toBeLessThan(0.8);
  });
});
