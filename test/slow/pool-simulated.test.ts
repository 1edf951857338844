/** Several processes that keep their limits in one backend, in virtual time, with the code that runs in Redis. */
import { describe, expect, test } from 'vitest';
import { compileScenario } from '../../src/simulator/scenario-file/compile-scenario.ts';
import type { ScenarioConfig } from '../../src/simulator/scenario-file/scenario-schema.ts';
import type { Millis } from '../../src/core/scalars.ts';
import type { SimulationReport } from '../../src/simulator/report/simulation-report.ts';
import { runScenario } from '../../src/simulator/run-scenario.ts';
import type { SimulatedPoolOptions, SimulatedPoolStats } from '../../src/simulator/sharing/simulated-pool.ts';
import { makeSimulatedPool } from '../../src/simulator/sharing/simulated-pool.ts';
import {
  countBetween,
  loadLibraryScenario,
  missedGoals,
  runLibraryScenario,
} from '../support/core/scenario-library.ts';

/** One-way latency within one network, in milliseconds. */
const NEAR = 0.3;
const SPAN = { warmup: 30_000, duration: 70_000 };

// Measured: goodput within 0.004 of one process's, waste within 0.0011.
describe.each(['token-bucket', 'no-burst', 'fixed-window'])('%s', (name) => {
  const alone = mean(name, 1, {});
  test.each([2, 8])('is used by %i replicas as by one', (replicas) => {
    const { goodput, waste } = mean(name, replicas, { pool: NEAR });
    expect(goodput).toBeGreaterThan(alone.goodput - 0.01);
    expect(waste).toBeLessThan(alone.waste + 0.002);
  });
});

// Measured: 0.911 alone, 0.901 by two and by eight: a call is needed to reassign a place.
test.each([2, 8])('concurrency places are found and used with %i replicas', (replicas) => {
  const { goodput, waste } = mean('concurrency', replicas, { pool: NEAR });
  expect(goodput).toBeGreaterThan(0.87);
  expect(waste).toBeLessThan(0.01);
});

// Measured: goodput 0.979 by one, two and eight; a request waits for 60 ms at the service, as with one process.
test.each([1, 2, 8])('a service that becomes slow gets as many requests as it can use from %i replicas', (replicas) => {
  const { report } = runLibraryScenario('slow-service', 1, { ...SPAN, replicas, pool: NEAR });
  const { goodput, upstreamWait, failures } = report;
  expect(goodput).toBeGreaterThan(0.93);
  expect(upstreamWait?.p50).toBeLessThan(100);
  expect(failures).toBe(0);
});

// Measured: 0.965 to 0.983.
test.each([2, 8])('%i replicas that start under full load find the queue of a service', (replicas) => {
  expect(missedGoals(runLibraryScenario('slow-service-cold-start', 1, { replicas, pool: NEAR }))).toEqual([]);
});

test('two replicas notice that a service has more workers', () => {
  expect(missedGoals(runLibraryScenario('slow-service-workers-added', 1, { replicas: 2, pool: NEAR }))).toEqual([]);
});

test.each([2, 8])('%i replicas limit nothing while only slow requests become more frequent', (replicas) => {
  const { report } = runLibraryScenario('slow-reports', 1, { replicas, pool: NEAR });
  expect(report.goodput).toBeGreaterThan(0.99);
  expect(report.refused).toBe(0);
});

test.each([1, 2, 8])('%i replicas delay and refuse nothing at half the capacity of a service', (replicas) => {
  const config = loadLibraryScenario('slow-service');
  const clients = config.clients.map((each) => ({ ...each, total: 80 }));
  const { report } = runLibraryScenario('slow-service', 1, {
    clients,
    replicas,
    pool: NEAR,
    duration: 60_000,
    warmup: 0,
  });
  expect(report.refused).toBe(0);
  expect(report.goodput).toBeGreaterThan(0.99);
  expect(report.latency.p99).toBeLessThan(10);
});

// Measured: half of the places are free again 3 s after the last call of the replica, and 0.99 of the rate after that.
test('the requests without a response of a replica that has ended do not count for long', () => {
  const { report } = run('slow-service', { replicas: 2 }, { deaths: new Map([[0, 45_000]]) });
  const accepted = (from: number, to: number): number => countBetween(report, 'accepted', [from, to]) / (to - from);
  expect(accepted(50_000, 70_000)).toBeGreaterThan(0.95 * accepted(30_000, 45_000));
});

// The goals hold in the part of the scenario after its warm-up as in all of it.
test.each([
  ['replicas-8-pool', 90_000],
  ['replicas-100-pool', 45_000],
])('%s: all replicas together use the limit', (name, duration) => {
  expect(missedGoals(runLibraryScenario(name, 1, { duration }))).toEqual([]);
});

test('a limit of one a second is shared: a token that one replica does not use is leased to another', () => {
  const runs = [1, 2, 3, 4, 5, 6, 7, 8].map(
    (seed) => runLibraryScenario('one-per-second', seed, { replicas: 4, pool: NEAR }).report,
  );
  expect(runs.reduce((sum, { goodput }) => sum + goodput, 0) / runs.length).toBeGreaterThan(0.88);
  expect(runs.reduce((sum, { waste }) => sum + waste, 0) / runs.length).toBeLessThan(0.05);
});

test('weights apply across replicas', () => {
  const { report } = runLibraryScenario('weights-4-to-1', 1, { replicas: 2, pool: NEAR });
  const heavy = report.groups.find(({ name }) => name === 'heavy');
  expect(Math.abs((heavy?.share ?? 0) / 0.8 - 1)).toBeLessThan(0.03);
});

// Measured: served 1.000, p99 318 ms. With four replicas 0.995 and 472 ms, with eight 0.986 and 661 ms.
test('a client that sends a hundred times as much hardly affects the others', () => {
  const { report } = runLibraryScenario('abuser', 1, { replicas: 2, pool: NEAR, duration: 75_000 });
  const others = report.groups.find(({ name }) => name === 'others');
  expect(others?.served).toBeGreaterThan(0.99);
  expect(others?.latency.p99).toBeLessThan(450);
});

test('an upstream that is down is probed by one replica at a time', () => {
  const { report } = runLibraryScenario('outage', 1, { replicas: 4, pool: NEAR });
  expect(report.goodput).toBeGreaterThan(0.85);
  expect(countBetween(report, 'sent', [21_000, 30_000])).toBeLessThan(40);
});

test('a replica has one call in flight at a time, which reports and requests tokens for many requests', () => {
  const { tally, report } = run('token-bucket', { replicas: 2 });
  const served = countBetween(report, 'accepted', [0, 70_000]);
  expect(tally.calls).toBeLessThan(served / 2);
});

test('the limit is used by the other replicas, and not exceeded, after one has ended', () => {
  const { report } = run('token-bucket', { replicas: 2 }, { deaths: new Map([[1, 45_000]]) });
  const accepted = (from: number, to: number): number => countBetween(report, 'accepted', [from, to]) / (to - from);
  expect(accepted(50_000, 70_000)).toBeGreaterThan(0.95 * accepted(30_000, 45_000));
  expect(countBetween(report, 'wasted', [45_000, 70_000])).toBeLessThan(30);
});

// Half of them would remain if the ended replica still had its places. The time to find the rest is random: over 24 seeds
// 0.89, of one 0.69 to 0.97.
test('the concurrency places of a replica that has ended are released', () => {
  const parts = [1, 2, 3, 4].map((seed) => {
    const { report } = run('concurrency', { replicas: 2 }, { seed, deaths: new Map([[0, 45_000]]) });
    const accepted = (from: number, to: number): number => countBetween(report, 'accepted', [from, to]) / (to - from);
    return accepted(52_000, 70_000) / accepted(30_000, 45_000);
  });
  expect(parts.reduce((sum, part) => sum + part, 0) / parts.length).toBeGreaterThan(0.8);
});

describe('while the backend is unreachable', () => {
  const away = (from: Millis, to: Millis) => (_replica: number, now: Millis) => now >= from && now < to;

  test('each replica continues with its share, and all reconnect', () => {
    const { report, tally } = run('token-bucket', { replicas: 4 }, { isUnreachable: away(40_000, 50_000) });
    expect(quality(report, [40_000, 54_000])).toEqual({ goodput: 'high', waste: 'low' });
    expect(tally.fallbacks.filter(({ isAlone }) => isAlone)).toHaveLength(4);
    expect(tally.fallbacks.filter(({ isAlone }) => !isAlone)).toHaveLength(4);
    for (const { at, isAlone } of tally.fallbacks) {
      if (isAlone) expect(at - 40_000).toBeLessThan(400);
      else expect(at - 50_000).toBeLessThan(2500);
    }
  });

  test('a replica without a connection continues alone, and the others divide the rest', () => {
    const isAway = (replica: number, now: Millis): boolean => replica === 0 && away(40_000, 50_000)(replica, now);
    const { report, tally } = run('token-bucket', { replicas: 4 }, { isUnreachable: isAway });
    expect(quality(report, [40_000, 54_000])).toEqual({ goodput: 'high', waste: 'low' });
    expect(tally.fallbacks.map(({ replica, isAlone }) => [replica, isAlone])).toEqual([
      [0, true],
      [0, false],
    ]);
  });

  test('a limit that the backend has lost is restored from what the replicas have', () => {
    const { report } = run('token-bucket', { replicas: 4 }, { forgetAt: 40_000 });
    expect(quality(report, [40_000, 50_000])).toEqual({ goodput: 'high', waste: 'low' });
  });

  test('a service that becomes slow is not overloaded by replicas that continue alone', () => {
    const { report } = run('slow-service', { replicas: 2 }, { isUnreachable: away(40_000, 50_000) });
    expect(countBetween(report, 'accepted', [40_000, 55_000])).toBeGreaterThan(0.9 * 15 * 160);
    expect(report.upstreamWait?.p99).toBeLessThan(1000);
    expect(report.failures).toBe(0);
  });

  test('the queue of a service is found again by a backend that has lost the limit', () => {
    const { report } = run('slow-service', { replicas: 2 }, { forgetAt: 40_000 });
    expect(countBetween(report, 'accepted', [40_000, 60_000])).toBeGreaterThan(0.9 * 20 * 160);
    expect(report.failures).toBe(0);
  });

  test('nothing is reported before the first response of the backend', () => {
    const { report, tally } = run('token-bucket', { replicas: 4 }, { isUnreachable: away(0, 30_000) });
    expect(quality(report, [35_000, 70_000])).toEqual({ goodput: 'high', waste: 'low' });
    expect(tally.fallbacks).toHaveLength(8);
  });
});

test.each([-3_600_000, 3_600_000])('a clock step of %i ms has no effect', (by) => {
  const { report } = run('token-bucket', { replicas: 4 }, { clock: (now) => now + (now < 40_000 ? 1e12 : 1e12 + by) });
  expect(quality(report, [40_000, 60_000])).toEqual({ goodput: 'high', waste: 'low' });
});

/** The documented bound for all faults: at least 0.85 of what the limit allows, and at most 0.05 wasted. */
function quality(report: SimulationReport, [from, to]: readonly [Millis, Millis]): { goodput: string; waste: string } {
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
  }: Partial<SimulatedPoolOptions> & { readonly forgetAt?: Millis; readonly seed?: number } = {},
): { readonly report: SimulationReport; readonly tally: SimulatedPoolStats } {
  const scenario = compileScenario(name, { ...loadLibraryScenario(name), ...SPAN, ...changes });
  const { pool, tally, makeStore, connect } = makeSimulatedPool(scenario, {
    maxTracked: 1000,
    latency: NEAR,
    ...options,
  });
  const report = runScenario({
    scenario,
    seed,
    makeStore,
    connect: (world) => {
      connect?.(world);
      if (forgetAt !== undefined) world.schedule(forgetAt, { run: () => pool.clear(), isProxyEvent: false });
    },
  });
  return { report, tally };
}

function mean(
  name: string,
  replicas: number,
  how: Partial<ScenarioConfig>,
): Pick<SimulationReport, 'goodput' | 'waste'> {
  const seeds = [1, 2, 3];
  const reports = seeds.map((seed) => runLibraryScenario(name, seed, { ...SPAN, replicas, ...how }).report);
  const of = (what: 'goodput' | 'waste'): number =>
    reports.reduce((sum, report) => sum + report[what], 0) / seeds.length;
  return { goodput: of('goodput'), waste: of('waste') };
}
