/** Several processes that lease from one lender, in virtual time, with the code that workers run. */
import { describe, expect, test } from 'vitest';
import { compileScenario } from '../../src/simulator/scenario-file/compile-scenario.ts';
import type { Report } from '../../src/simulator/report/simulation-report.ts';
import { runScenario } from '../../src/simulator/run-scenario.ts';
import { leaseAmong } from '../../src/simulator/sharing/simulated-leasing.ts';
import { countBetween, loadLibrary, runLibrary } from '../support/library.ts';

/** Milliseconds, one way: what a message between two processes of a machine takes. */
const NEAR = 0.3;
const SPAN = { warmup: 30_000, duration: 70_000 };

// Seen: goodput within 0.006 of one process's, waste within 0.0006.
describe.each(['token-bucket', 'no-burst', 'fixed-window', 'concurrency'])('%s', (name) => {
  const alone = mean(name, 1);
  test.each([2, 4, 8])('is used by %i workers as by one', (workers) => {
    const { goodput, waste } = mean(name, workers);
    expect(goodput).toBeGreaterThan(alone.goodput - 0.01);
    expect(waste).toBeLessThan(alone.waste + 0.002);
  });
});

test('a limit of one a second is one a second for all of them: what one does not use, another gets', () => {
  const { report } = runLibrary('one-per-second', 1, { replicas: 4, lease: NEAR });
  expect(report.goodput).toBeGreaterThan(0.92);
});

test('one that dies takes nothing with it: the rest use the limit, and do not exceed it', () => {
  const config = { ...loadLibrary('token-bucket'), ...SPAN, replicas: 2 };
  const scenario = compileScenario('death', config);
  const deaths = new Map([[1, 45_000]]);
  const report = runScenario({
    scenario,
    seed: 1,
    ...leaseAmong(scenario, 1, { maxTracked: 1000, latency: NEAR, deaths }),
  });
  const accepted = (from: number, to: number): number => countBetween(report, 'accepted', [from, to]) / (to - from);
  // Half of the clients' requests come to the dead one: the other has what the limit allows, as before.
  expect(accepted(50_000, 70_000)).toBeGreaterThan(0.96 * accepted(30_000, 45_000));
  expect(countBetween(report, 'wasted', [45_000, 70_000])).toBeLessThan(30);
});

test('a dead one holds no places in flight', () => {
  const config = { ...loadLibrary('concurrency'), ...SPAN, replicas: 2 };
  const scenario = compileScenario('death', config);
  const deaths = new Map([[0, 45_000]]);
  const report = runScenario({
    scenario,
    seed: 1,
    ...leaseAmong(scenario, 1, { maxTracked: 1000, latency: NEAR, deaths }),
  });
  const accepted = (from: number, to: number): number => countBetween(report, 'accepted', [from, to]) / (to - from);
  expect(accepted(50_000, 70_000)).toBeGreaterThan(0.9 * accepted(30_000, 45_000));
});

test('weights hold across them', () => {
  const { report } = runLibrary('weights-4-to-1', 1, { replicas: 2, lease: NEAR });
  const heavy = report.groups.find(({ name }) => name === 'heavy');
  expect(Math.abs((heavy?.share ?? 0) / 0.8 - 1)).toBeLessThan(0.03);
});

// Seen: served 1.000, p99 218 ms; in two processes that share a rate and nothing else 0.964 and 855 ms.
test('who sends a hundred times as much is not felt by the others', () => {
  const { report } = runLibrary('abuser', 1, { replicas: 2, lease: NEAR, duration: 75_000 });
  const others = report.groups.find(({ name }) => name === 'others');
  expect(others?.served).toBeGreaterThan(0.995);
  expect(others?.latency.p99).toBeLessThan(300);
});

function mean(name: string, workers: number): Pick<Report, 'goodput' | 'waste'> {
  const reports = [2].map((seed) => {
    const lease = workers === 1 ? {} : { lease: NEAR };
    return runLibrary(name, seed, { ...SPAN, replicas: workers, ...lease }).report;
  });
  const of = (figure: 'goodput' | 'waste'): number =>
    reports.reduce((sum, report) => sum + report[figure], 0) / reports.length;
  return { goodput: of('goodput'), waste: of('waste') };
}
