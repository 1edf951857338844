import { describe, expect, test } from 'vitest';
import { AddressGroups } from '../../../src/core/admission/address-groups.ts';
import { AddressSlots } from '../../../src/core/limits/address-slots.ts';
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

describe('the demand of an address', () => {
  test('is half a request a second for each arrival, decays over 2 s, and leaves out returns at the named time', () => {
    const groups = new AddressGroups();
    expect(groups.freshDemand('a', 0)).toBe(0);
    groups.onArrival('a', 0, NEVER);
    groups.onArrival('a', 0, NEVER);
    groups.onArrival('b', 0, NEVER);
    expect(groups.freshDemand('a', 0)).toBe(1);
    expect(groups.freshDemand('a', 1500)).toBeCloseTo(Math.exp(-0.75), 12);
    groups.onArrival('a', 1500, 0, true);
    expect(groups.freshDemand('a', 1500)).toBeCloseTo(Math.exp(-0.75), 12);
    groups.onArrival('a', 2500, 1500);
    expect(groups.freshDemand('a', 2500)).toBeCloseTo(Math.exp(-1.25) + 0.5, 12);
    expect(groups.freshDemand('a', 6000)).toBe(0);
  });

  test('is counted only for as many addresses as the table has room for', () => {
    const groups = new AddressGroups(1);
    groups.onArrival('a', 0, NEVER);
    groups.onArrival('b', 0, NEVER);
    expect([groups.freshDemand('a', 0), groups.freshDemand('b', 0)]).toEqual([0.5, 0]);
    expect(groups.bound).toMatchObject({ used: 1, reached: 1 });
  });
});

describe('the return slots of addresses', () => {
  test('are dropped when they are over, are used, or are the oldest of more than a thousand', () => {
    const slots = new AddressSlots();
    expect(slots.last('a')).toBe(NEVER);
    slots.set('a', 5000, 0);
    slots.set('a', 7000, 0);
    expect(slots.last('a')).toBe(7000);
    slots.set('b', 9000, 7000);
    expect([slots.last('a'), slots.last('b')]).toEqual([NEVER, 9000]);
    slots.release('b');
    expect(slots.last('b')).toBe(NEVER);
    for (let i = 0; i <= 1000; i += 1) slots.set(`${i}`, 9000, 0);
    expect([slots.last('0'), slots.last('1'), slots.last('1000')]).toEqual([NEVER, 9000, 9000]);
  });
});

describe('the slots of a limit', () => {
  test('come one turn later if any slot is reserved, and at most 30 s from now', () => {
    const { limit } = new World({ upstream: limitedTo(0.1) });
    limit.delayReturnSlots(1000);
    expect(limit.lastReturnSlot).toBe(NEVER);
    expect(limit.reserveReturnSlot(0, 0)).toBe(10_000);
    for (const last of [20_000, 30_000, 31_000, 31_000]) {
      limit.delayReturnSlots(1000);
      expect(limit.lastReturnSlot).toBe(last);
    }
    limit.delayReturnSlots(31_000);
    expect(limit.lastReturnSlot).toBe(31_000);
  });
});

describe('a new key for each request', () => {
  /** 50 a second; five clients send 8 each from addresses of their own, one sends 400, each with a new key. */
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

  test('gains nothing if keys are grouped by address, because they divide one share', () => {
    expect(successOfTheFive(true)).toBeGreaterThan(0.97);
  });

  test('would cost the other clients if each key had a share of its own', () => {
    expect(successOfTheFive(false)).toBeLessThan(0.8);
  });
});
