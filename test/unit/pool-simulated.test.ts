/** Several processes that keep their limits in one pool, in virtual time, with the code that runs in Redis. */
import { describe, expect, test } from 'vitest';
import { compileScenario } from '../../src/simulator/scenario-file/compile-scenario.ts';
import type { ScenarioConfig } from '../../src/simulator/scenario-file/scenario-schema.ts';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import type { Report } from '../../src/simulator/report/simulation-report.ts';
import { runScenario } from '../../src/simulator/run-scenario.ts';
import type { PoolOptions, PoolTally } from '../../src/simulator/sharing/simulated-pool.ts';
import { poolAmong } from '../../src/simulator/sharing/simulated-pool.ts';
import { countBetween, loadLibrary, missedGoals, runLibrary } from '../support/library.ts';

/** Milliseconds, one way: what a call within one network takes. */
const NEAR = 0.3;
const SPAN = { warmup: 30_000, duration: 70_000 };

// Seen: goodput within 0.004 of one process's, waste within 0.0011.
describe.each(['token-bucket', 'no-burst', 'fixed-window'])('%s', (name) => {
  const alone = mean(name, 1, {});
  test.each([2, 8])('is used by %i replicas as by one', (replicas) => {
    const { goodput, waste } = mean(name, replicas, { pool: NEAR });
    expect(goodput).toBeGreaterThan(alone.goodput - 0.01);
    expect(waste).toBeLessThan(alone.waste + 0.002);
  });
});

// Seen: 0.911 alone, 0.901 by two and by eight: a place changes hands by a call.
test.each([2, 8])('places in flight are found and used by %i replicas', (replicas) => {
  const { goodput, waste } = mean('concurrency', replicas, { pool: NEAR });
  expect(goodput).toBeGreaterThan(0.87);
  expect(waste).toBeLessThan(0.01);
});

test.each(['replicas-8-pool', 'replicas-100-pool'])('%s: the limit is used by all of them together', (name) => {
  expect(missedGoals(runLibrary(name))).toEqual([]);
});

test('a limit of one a second is one a second for all of them: what one does not use, another gets', () => {
  const { report } = runLibrary('one-per-second', 1, { replicas: 4, pool: NEAR });
  expect(report.goodput).toBeGreaterThan(0.88);
  expect(report.waste).toBeLessThan(0.05);
});

test('weights hold across them', () => {
  const { report } = runLibrary('weights-4-to-1', 1, { replicas: 2, pool: NEAR });
  const heavy = report.groups.find(({ name }) => name === 'heavy');
  expect(Math.abs((heavy?.share ?? 0) / 0.8 - 1)).toBeLessThan(0.03);
});

// Seen: served 1.000, p99 318 ms. With four replicas 0.995 and 472 ms, with eight 0.986 and 661 ms.
test('who sends a hundred times as much is hardly felt by the others', () => {
  const { report } = runLibrary('abuser', 1, { replicas: 2, pool: NEAR, duration: 75_000 });
  const others = report.groups.find(({ name }) => name === 'others');
  expect(others?.served).toBeGreaterThan(0.99);
  expect(others?.latency.p99).toBeLessThan(450);
});

test('an upstream that is down is probed by one of them at a time', () => {
  const { report } = runLibrary('outage', 1, { replicas: 4, pool: NEAR });
  expect(report.goodput).toBeGreaterThan(0.85);
  expect(countBetween(report, 'sent', [21_000, 30_000])).toBeLessThan(40);
});

test('one call is under way at a time, and tells and asks for many requests', () => {
  const { tally, report } = run('token-bucket', { replicas: 2 });
  const served = countBetween(report, 'accepted', [0, 70_000]);
  expect(tally.calls).toBeLessThan(served / 2);
});

test('one that dies takes nothing with it: the rest use the limit, and do not exceed it', () => {
  const { report } = run('token-bucket', { replicas: 2 }, { deaths: new Map([[1, 45_000]]) });
  const accepted = (from: number, to: number): number => countBetween(report, 'accepted', [from, to]) / (to - from);
  expect(accepted(50_000, 70_000)).toBeGreaterThan(0.95 * accepted(30_000, 45_000));
  expect(countBetween(report, 'wasted', [45_000, 70_000])).toBeLessThan(30);
});

// Half of them, if it held them still. How soon the rest are found again is chance: over 24 seeds 0.89, of one 0.69 to 0.97.
test('a dead one holds no places in flight', () => {
  const parts = [1, 2, 3, 4].map((seed) => {
    const { report } = run('concurrency', { replicas: 2 }, { seed, deaths: new Map([[0, 45_000]]) });
    const accepted = (from: number, to: number): number => countBetween(report, 'accepted', [from, to]) / (to - from);
    return accepted(52_000, 70_000) / accepted(30_000, 45_000);
  });
  expect(parts.reduce((sum, part) => sum + part, 0) / parts.length).toBeGreaterThan(0.8);
});

describe('while the pool is away', () => {
  const away = (from: Millis, to: Millis) => (_replica: number, now: Millis) => now >= from && now < to;

  test('each goes on with its share, and all come back', () => {
    const { report, tally } = run('token-bucket', { replicas: 4 }, { isAway: away(40_000, 50_000) });
    expect(quality(report, [40_000, 54_000])).toEqual({ goodput: 'high', waste: 'low' });
    expect(tally.alone.filter(({ isAlone }) => isAlone)).toHaveLength(4);
    expect(tally.alone.filter(({ isAlone }) => !isAlone)).toHaveLength(4);
    for (const { at, isAlone } of tally.alone) {
      if (isAlone) expect(at - 40_000).toBeLessThan(400);
      else expect(at - 50_000).toBeLessThan(2500);
    }
  });

  test('one that is cut off goes on alone, and the others share what there is', () => {
    const isAway = (replica: number, now: Millis): boolean => replica === 0 && away(40_000, 50_000)(replica, now);
    const { report, tally } = run('token-bucket', { replicas: 4 }, { isAway });
    expect(quality(report, [40_000, 54_000])).toEqual({ goodput: 'high', waste: 'low' });
    expect(tally.alone.map(({ replica, isAlone }) => [replica, isAlone])).toEqual([
      [0, true],
      [0, false],
    ]);
  });

  test('a limit that it has forgotten goes on from what they know', () => {
    const { report } = run('token-bucket', { replicas: 4 }, { forgetAt: 40_000 });
    expect(quality(report, [40_000, 50_000])).toEqual({ goodput: 'high', waste: 'low' });
  });

  test('nothing is known before it was there', () => {
    const { report, tally } = run('token-bucket', { replicas: 4 }, { isAway: away(0, 30_000) });
    expect(quality(report, [35_000, 70_000])).toEqual({ goodput: 'high', waste: 'low' });
    expect(tally.alone).toHaveLength(8);
  });
});

test.each([-3_600_000, 3_600_000])('a clock that is set by %i ms is not felt', (by) => {
  const { report } = run('token-bucket', { replicas: 4 }, { clock: (now) => now + (now < 40_000 ? 1e12 : 1e12 + by) });
  expect(quality(report, [40_000, 60_000])).toEqual({ goodput: 'high', waste: 'low' });
});

/** As promised of all faults: at least 0.85 of what the limit allows, and at most 0.05 wasted. */
function quality(report: Report, [from, to]: readonly [Millis, Millis]): { goodput: string; waste: string } {
  const accepted = countBetween(report, 'accepted', [from, to]);
  const allowed = (100 * (to - from)) / 1000;
  const waste = countBetween(report, 'wasted', [from, to]) / accepted;
  return {
    goodput: accepted / allowed >= 0.85 ? 'high' : `${accepted / allowed}`,
    waste: waste <= 0.05 ? 'low' : `${waste}`,
  };
}

function run(
  name: string,
  changes: Partial<ScenarioConfig>,
  {
    forgetAt,
    seed = 1,
    ...options
  }: Partial<PoolOptions> & { readonly forgetAt?: Millis; readonly seed?: number } = {},
): { readonly report: Report; readonly tally: PoolTally } {
  const scenario = compileScenario(name, { ...loadLibrary(name), ...SPAN, ...changes });
  const { pool, tally, makeStore, connect } = poolAmong(scenario, { maxTracked: 1000, latency: NEAR, ...options });
  const report = runScenario({
    scenario,
    seed,
    makeStore,
    connect: (world) => {
      connect?.(world);
      if (forgetAt !== undefined) world.at(forgetAt, { run: () => pool.clear(), isOurs: false });
    },
  });
  return { report, tally };
}

function mean(name: string, replicas: number, how: Partial<ScenarioConfig>): Pick<Report, 'goodput' | 'waste'> {
  const seeds = [1, 2, 3];
  const reports = seeds.map((seed) => runLibrary(name, seed, { ...SPAN, replicas, ...how }).report);
  const of = (what: 'goodput' | 'waste'): number =>
    reports.reduce((sum, report) => sum + report[what], 0) / seeds.length;
  return { goodput: of('goodput'), waste: of('waste') };
}
