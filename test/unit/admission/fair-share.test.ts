/** Fairness as clients observe it: whole exchanges in virtual time, against a configured or learned limit. */
import { describe, expect, test } from 'vitest';
import { makeLimitModel } from '../../../src/simulator/limit-models/limit-model-spec.ts';
import type { CallRecord } from '../../support/core/call-record.ts';
import { isSuccess, limitedBy } from '../../support/core/call-record.ts';
import { limitedTo, routePolicy, response, SEND_ONCE } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const ONCE = routePolicy({ retry: SEND_ONCE });

/** Jain's index: 1 when all have the same. */
function jain(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  const squares = shares.reduce((total, share) => total + share * share, 0);
  return sum ** 2 / (shares.length * squares);
}

const successes = (records: readonly CallRecord[], from = 0): number =>
  records.filter((record) => record.startedAt >= from && isSuccess(record)).length;

describe('a known limit of 100 a second, with a greater demand of all clients', () => {
  test('is fully used, and divided equally among equal clients', () => {
    const world = new World({ upstream: limitedTo(100) });
    const clients = Array.from({ length: 10 }, (_, i) => world.stream(50, 20_000, { client: `${i}`, policy: ONCE }));
    world.runUntil(25_000);
    const served = clients.map((records) => successes(records));
    const total = served.reduce((sum, each) => sum + each, 0);
    expect(total).toBeGreaterThanOrEqual(2000);
    expect(total).toBeLessThanOrEqual(2101); // requests still waiting at the end are served after it
    expect(jain(served)).toBeGreaterThan(0.99);
  });

  test('is divided by weight, 4 to 1, and no allowance is cut for a demand that all clients have', () => {
    const world = new World({ upstream: limitedTo(100) });
    const five = (name: string, weight: number) =>
      Array.from({ length: 5 }, (_, i) => world.stream(40, 30_000, { client: `${name} ${i}`, weight, policy: ONCE }));
    const heavy = five('heavy', 4);
    const light = five('light', 1); // each sends ten times its share of 4 a second, and no more than the others
    world.runUntil(31_000);
    const [a, b] = [heavy, light].map((streams) => streams.map((records) => successes(records, 5000)));
    const total = (served: readonly number[] = []) => served.reduce((sum, each) => sum + each, 0);
    expect(Math.abs(total(a) / (total(a) + total(b)) - 0.8)).toBeLessThan(0.02);
    expect(jain(a ?? [])).toBeGreaterThan(0.99);
    expect(jain(b ?? [])).toBeGreaterThan(0.99);
    expect(world.ofType('client-cut')).toEqual([]);
    expect(world.gate.view(world.now).clients.allowance).toEqual({ min: 1, mean: 1 });
  });

  test('gives the unused part of one client to the others', () => {
    const world = new World({ upstream: limitedTo(100) });
    const idle = world.stream(5, 20_000, { client: 'idle', weight: 4, policy: ONCE });
    const busy = world.stream(200, 20_000, { client: 'busy', policy: ONCE });
    world.runUntil(21_000);
    expect(successes(idle) / idle.length).toBe(1);
    expect(successes(busy) / 20).toBeGreaterThan(94);
  });
});

describe('one client with an excessive demand', () => {
  /** Nine clients send 9.5 a second each, and from 15 s on another sends 500, under an unconfigured limit of 100. */
  function excessiveDemand(): { world: World; nine: CallRecord[][]; flood: CallRecord[] } {
    const world = new World({ seed: 11 });
    world.respond = limitedBy(makeLimitModel({ kind: 'token-bucket', rate: 100, burst: 10 }), world, 30);
    const nine = Array.from({ length: 9 }, (_, i) => world.stream(9.5, 50_000, { client: `modest ${i}` }));
    let flood: CallRecord[] = [];
    world.at(15_000, () => {
      flood = world.stream(500, 50_000, { client: 'flood' });
    });
    world.runUntil(50_000);
    return { world, nine, flood };
  }

  const { world, nine, flood } = excessiveDemand();
  const since = (from: number) => nine.flatMap((records) => records.filter(({ startedAt }) => startedAt >= from));

  test('has its allowance cut, and the nine others succeed', () => {
    expect(successes(nine.flat()) / nine.flat().length).toBeGreaterThan(0.99);
    expect(world.ofType('client-cut').every(({ client }) => client === 'flood')).toBe(true);
    // It sends 500, and three times its share is 30: 0.06, and 1/16 is the least.
    expect(world.gate.view(world.now).clients.allowance.min).toBe(1 / 16);
  });

  test('delays the others little: 99 in 100 get a response within 300 ms', () => {
    const took = since(20_000)
      .map(({ startedAt, endedAt }) => endedAt - startedAt)
      .toSorted((a, b) => a - b);
    expect(took[Math.floor(0.99 * took.length)]).toBeLessThan(300);
  });

  test('gets what the others leave unused, and no token is wasted', () => {
    const served = successes(flood, 20_000) + successes(since(20_000));
    expect(served / 30).toBeGreaterThan(88);
    expect(successes(flood, 20_000)).toBeGreaterThan(30);
  });

  test('is restored step by step once its demand ends', () => {
    const states = () => world.ofType('client-state').map(({ to }) => to);
    const flooding = world.ofType('client-state').at(-1)?.to;
    expect(['backoff', 'cooldown']).toContain(flooding);
    world.stream(2, 90_000, { client: 'flood' });
    const allowances: number[] = [];
    for (let now = 52_100; now <= 84_000; now += 1000) {
      world.runUntil(now);
      allowances.push(world.gate.view(now).clients.allowance.min);
    }
    expect(allowances).toEqual(allowances.toSorted((a, b) => a - b));
    expect(allowances[0]).toBeLessThan(0.2);
    expect(allowances.at(-1)).toBe(1);
    expect(states().slice(-2)).toEqual(['restoring', 'normal']);
  });
});

describe('a refused client that returns when its Retry-After names', () => {
  test('succeeds when it returns, though the demand of others exceeds the limit', () => {
    const world = new World({ upstream: limitedTo(50), seed: 4 });
    for (let i = 0; i < 5; i += 1) world.stream(20, 60_000, { client: `busy ${i}`, policy: ONCE });
    const tries: number[] = [];
    for (let i = 0; i < 40; i += 1) {
      world.at(5000 + 500 * i, () => {
        const burst = `obedient ${i}`;
        // Two at once: the second may exceed its share.
        for (let j = 0; j < 2; j += 1) {
          world.callUntilAdmitted({ client: burst, policy: ONCE }, (record, count) => {
            expect(isSuccess(record)).toBe(true);
            tries.push(count);
          });
        }
      });
    }
    world.runUntil(70_000);
    expect(tries).toHaveLength(80);
    expect(Math.max(...tries)).toBeLessThanOrEqual(2);
  });

  test('succeeds at the first return if the upstream named the time', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const world = new World({ seed });
      world.respond = ({ at }) => ({
        outcome: at === 0 ? response(429, { retryAfterMs: 1500 }) : response(200),
        after: 10,
      });
      const ends: (number | undefined)[] = [];
      world.call({ policy: ONCE });
      world.at(100, () => world.callUntilAdmitted({}, ({ status }, tries) => ends.push(status, tries)));
      world.runUntil(10_000);
      expect(ends).toEqual([200, 2]);
    }
  });

  test('is served at the rate with five hundred others, of which few are refused twice', () => {
    const world = new World({ upstream: limitedTo(100), seed: 8 });
    const ends: number[] = [];
    const tries: number[] = [];
    for (let i = 0; i < 500; i += 1) {
      world.callUntilAdmitted({ client: `client ${i}`, policy: ONCE }, ({ endedAt }, count) => {
        ends.push(endedAt);
        tries.push(count);
      });
    }
    world.runUntil(60_000);
    expect(ends).toHaveLength(500);
    expect(Math.max(...ends)).toBeLessThan(7000); // the rate needs at least 5 s
    expect(tries.filter((count) => count > 2).length).toBeLessThan(25);
    // The first to return compete with none of those that were queued.
    const served = [0, 2, 3, 4].map((second) => ends.filter((at) => Math.floor(at / 1000) === second).length);
    for (const each of served) expect(each).toBeGreaterThan(85);
  });

  test('is not refused twice, even if so many arrive that each exceeds its share', () => {
    const world = new World({ upstream: limitedTo(20), seed: 8 });
    const tries: number[] = [];
    for (let i = 0; i < 500; i += 1) {
      world.callUntilAdmitted({ client: `client ${i}`, policy: ONCE }, (_, count) => tries.push(count));
    }
    world.runUntil(27_000); // the rate needs at least 25 s
    expect(tries).toHaveLength(500);
    expect(Math.max(...tries)).toBe(2);
    expect(world.ofType('client-cut')).toEqual([]);
  });
});
