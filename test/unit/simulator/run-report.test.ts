import { describe, expect, test } from 'vitest';
import { LatencyHistogram } from '../../../src/simulator/report/latency-histogram.ts';
import type { ReportSample } from '../../../src/simulator/report/simulation-report.ts';
import { jainIndex, settlingTime } from '../../../src/simulator/report/simulation-report.ts';
import { runScenario, SAMPLE_INTERVAL } from '../../../src/simulator/run-scenario.ts';
import { upstreamCapacity } from '../../../src/simulator/report/upstream-capacity.ts';
import type { Scenario } from '../../../src/simulator/scenario.ts';
import { UPSTREAM_NAME } from '../../../src/simulator/scenario.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { routePolicy, upstreamSettings } from '../../support/core/policy-builders.ts';
import { TEN_CLIENTS } from '../../support/core/ten-clients.ts';

const GROUP = { ...TEN_CLIENTS, rate: 4 };

function scenarioOf(changes: Partial<Scenario> = {}): Scenario {
  const { name: _, ...settings } = upstreamSettings();
  return {
    name: 'test',
    duration: 30_000,
    warmup: 10_000,
    upstream: { limit: { kind: 'unlimited' }, latency: { kind: 'constant', mean: 50 } },
    networkLatency: 5,
    clients: [GROUP],
    replicas: 1,
    shared: false,
    pauses: [],
    policy: { ...settings, plan: routePolicy() },
    ...changes,
  };
}

function run(scenario: Scenario) {
  const { policy } = scenario;
  return runScenario({
    scenario,
    seed: 1,
    makeStore: (_, random, listen) =>
      new MemoryStore({ upstreams: [{ name: UPSTREAM_NAME, ...policy }], maxTracked: 1000, random, listen }),
  });
}

describe('a run report', () => {
  test('counts all of the demand if there is no limit', () => {
    const report = run(scenarioOf());
    const { offered, successes, sends, wasted, refused, failed } = report.counts;
    expect(report.span).toBe(20_000);
    expect(offered).toBeGreaterThan(700);
    expect(Math.abs(successes - offered)).toBeLessThan(15); // in flight at either end
    expect([wasted, refused, failed]).toEqual([0, 0, 0]);
    expect(Math.abs(sends - offered)).toBeLessThan(15);
    expect(report.goodput).toBeCloseTo(1, 1);
    expect([report.waste, report.failures, report.refused, report.oscillation]).toEqual([0, 0, 0, 0]);
    expect(report.latency.p99).toBe(0);
    expect(report.jain).toBeGreaterThan(0.97);
    expect(report.series).toHaveLength(30_000 / SAMPLE_INTERVAL);
  });

  test('counts what the limit would have admitted if the demand is higher', () => {
    const limit = { kind: 'token-bucket' as const, rate: 10, burst: 5 };
    const report = run(scenarioOf({ upstream: { limit, latency: { kind: 'constant', mean: 50 } } }));
    expect(report.goodput).toBeCloseTo(report.counts.successes / (10 * 20), 9);
    expect(report.waste).toBe(report.counts.wasted / report.counts.successes);
    expect(report.refused).toBeGreaterThan(0.5);
    expect(report.groups[0]?.served).toBe(report.counts.successes / report.counts.offered);
    expect(report.groups[0]?.share).toBe(1);
  });

  test('counts nothing as lost during an outage, when the upstream has no capacity', () => {
    const outages = [{ from: 15_000, to: 20_000, how: 'refuse' as const }];
    const spec = { limit: { kind: 'token-bucket', rate: 20, burst: 5 }, outages } as const;
    expect(upstreamCapacity(spec)(15_000, 20)).toBe(20);
    expect(upstreamCapacity(spec)(15_250, 20)).toBe(0);
    expect(upstreamCapacity(spec)(20_250, 20)).toBe(20);
    const report = run(scenarioOf({ upstream: spec }));
    expect(report.goodput).toBeCloseTo(report.counts.successes / (20 * 15), 9);
  });
});

test("the capacity of concurrency places follows from Little's law", () => {
  const limit = { kind: 'concurrency' as const, limit: 20 };
  expect(upstreamCapacity({ limit, latency: { kind: 'exponential', mean: 100 } })(0, 20)).toBe(200);
});

test('the Jain index is 1 for equal clients, and 1/n if one client has everything', () => {
  expect(jainIndex([3, 3, 3])).toBe(1);
  expect(jainIndex([5, 0, 0, 0])).toBe(0.25);
  expect(jainIndex([])).toBe(1);
});

test('quantiles are exact within a bucket of 2 %', () => {
  const latencies = new LatencyHistogram();
  for (let took = 1; took <= 1000; took += 1) latencies.add(took);
  for (const share of [0.01, 0.5, 0.9, 0.99]) {
    expect(Math.abs(latencies.quantile(share) / (1000 * share) - 1)).toBeLessThan(0.02);
  }
  expect(new LatencyHistogram().quantile(0.5)).toBe(0);
});

describe('a run has settled', () => {
  const sample = (at: number, accepted: number, wasted: number): ReportSample => ({
    at,
    limit: 100,
    rate: 100,
    state: 'restoring',
    offered: 200,
    sent: accepted + wasted,
    accepted,
    wasted,
    queued: 0,
    served: [accepted],
  });
  const series = (of: (at: number) => ReportSample): ReportSample[] =>
    Array.from({ length: 120 }, (_, i) => of(250 * (i + 1)));

  test('once the limit is used for 3 s and little is wasted', () => {
    expect(
      settlingTime(
        series((at) => sample(at, at <= 12_000 ? 50 : 95, 0)),
        10_000,
        30_000,
      ),
    ).toBe(1750);
    expect(
      settlingTime(
        series((at) => sample(at, 95, at <= 12_000 ? 50 : 0)),
        10_000,
        30_000,
      ),
    ).toBe(1750);
  });

  test('at once if nothing changed, and never if the limit is unused or much is wasted', () => {
    expect(
      settlingTime(
        series((at) => sample(at, 100, 0)),
        10_000,
        30_000,
      ),
    ).toBe(0);
    expect(
      settlingTime(
        series((at) => sample(at, 80, 0)),
        10_000,
        30_000,
      ),
    ).toBeUndefined();
  });
});
