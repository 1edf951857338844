import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { NO_PROMISE, ReturnPromises } from '../../../src/core/limits/return-promises.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { NestedLimitSettings } from '../../../src/store/upstream-nested-limits.ts';
import { SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const USABLE_FOR = 2000;
const promise = (last: number) => ({ first: last, last, askedAt: 0 });

test('finds the last return time of each client', () => {
  const promises = new ReturnPromises();
  promises.set('a', promise(1000), USABLE_FOR, 0);
  promises.set('b', promise(3000), USABLE_FOR, 0);
  promises.set('a', promise(5000), USABLE_FOR, 0);
  expect([promises.get('a'), promises.get('b'), promises.get('c')]).toEqual([promise(5000), promise(3000), NO_PROMISE]);
  promises.delete('a');
  expect(promises.get('a')).toBe(NO_PROMISE);
});

test('drops return times that can no longer be used', () => {
  const promises = new ReturnPromises();
  for (let i = 0; i < 100; i += 1) promises.set(`client ${i}`, promise(i + 1000), USABLE_FOR, i);
  expect(promises.size).toBe(100);
  promises.set('last', promise(4000), USABLE_FOR, 3050); // the first 50 were asked to return before 1050
  expect(promises.size).toBe(51);
});

test('drops the return time of the client that was refused longest ago if there are too many', () => {
  const promises = new ReturnPromises();
  for (let i = 0; i < 10_010; i += 1) promises.set(`client ${i}`, promise(60_000), USABLE_FOR, i);
  expect(promises.size).toBe(10_000);
  expect([promises.get('client 9'), promises.get('client 10')]).toEqual([NO_PROMISE, promise(60_000)]);
});

describe('a client that was asked to return before its upstream got its first nested limit', () => {
  const rateOf = (perSecond: number) => ({ initialRate: undefined, maxRate: perSecond, minRate: 0.1, cooldown: 1000 });
  const OWN = { rate: rateOf(2), queue: { maxWait: 0, maxDepth: 100 } };
  const CHARGES: LimitRef = { upstream: 'up', nested: 'charges', scope: 'upstream', key: '' };
  const charges: NestedLimitSettings = { name: 'charges', scope: 'upstream', isKeyed: false, rate: rateOf(0.5) };

  /** `ask` returns the time of the Retry-After if the request was refused, and whether it counts as a return on time. */
  function open() {
    const world = new World({ upstream: OWN, random: () => 0.5 });
    world.now = 10_000;
    const ask = (client: string, limits: readonly LimitRef[] = [SHARED], arrivedAt = world.now) => {
      const { ticket, admission } = world.arrive({ client, refs: limits, arrivedAt });
      world.gate.onExchangeEnd(ticket);
      const returnAt = admission?.kind === 'refused' ? world.now + admission.retryAfterMs : Number.NaN;
      return { returnAt, isReturn: ticket.isReturning, keepsToPromise: ticket.keepsToPromise };
    };
    const reload = (...nested: readonly NestedLimitSettings[]): void => {
      if (!(world.store instanceof MemoryStore)) throw new Error('expected a store that can be configured');
      world.store.configure([upstreamSettings({ ...OWN, nested })], 1000);
    };
    ask('first');
    return { world, ask, reload };
  }

  test('is on time when it returns then', () => {
    const { world, ask, reload } = open();
    const { returnAt } = ask('a');
    reload(charges);
    world.runUntil(returnAt);
    expect(ask('a')).toMatchObject({ isReturn: true, keepsToPromise: true });
    expect(ask('b').isReturn).toBe(false);
  });

  test('is on time when the head of its request arrives then, although its body takes longer', () => {
    const { world, ask, reload } = open();
    const { returnAt } = ask('a');
    reload(charges);
    world.runUntil(returnAt + 8000);
    expect(ask('a', [SHARED], returnAt).isReturn).toBe(true);
  });

  test('is too early or too late at another time', () => {
    const { world, ask, reload } = open();
    const [early, late] = [ask('a'), ask('b')];
    reload(charges);
    world.runUntil(early.returnAt - 1001);
    expect(ask('a').isReturn).toBe(false);
    world.runUntil(late.returnAt + 2001);
    expect(ask('b').isReturn).toBe(false);
  });

  test('is on time although the nested limit refuses another of its requests before', () => {
    const { world, ask, reload } = open();
    const { returnAt } = ask('a');
    reload(charges);
    world.runUntil(returnAt - 900);
    for (let i = 0; i < 8; i += 1) ask(`other ${i}`, [SHARED, CHARGES]);
    expect(ask('a', [SHARED, CHARGES]).returnAt).toBeGreaterThan(returnAt + 1000);
    world.runUntil(returnAt);
    expect(ask('a').isReturn).toBe(true);
  });

  test('is on time when it returns to the nested limit that refused it, and only there', () => {
    const { world, ask, reload } = open();
    reload(charges);
    for (let i = 0; i < 8; i += 1) ask(`other ${i}`, [SHARED, CHARGES]);
    const { returnAt } = ask('a', [SHARED, CHARGES]);
    world.runUntil(returnAt);
    expect(ask('a').isReturn).toBe(false);
    expect(ask('a', [SHARED, CHARGES]).isReturn).toBe(true);
  });

  test('is on time after the nested limit is removed, and added again', () => {
    const { world, ask, reload } = open();
    reload(charges);
    const { returnAt } = ask('a');
    const nested = ask('b', [SHARED, CHARGES]);
    reload();
    world.runUntil(returnAt);
    expect(ask('a').isReturn).toBe(true);
    world.runUntil(nested.returnAt);
    expect(ask('b').isReturn).toBe(true);
    const again = ask('c');
    reload(charges);
    world.runUntil(again.returnAt);
    expect(ask('c').isReturn).toBe(true);
  });
});
