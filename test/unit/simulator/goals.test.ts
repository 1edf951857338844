import { expect, test } from 'vitest';
import { evaluateGoals } from '../../../src/simulator/report/goals.ts';
import type { SimulationReport } from '../../../src/simulator/report/simulation-report.ts';
import { runLibraryScenario } from '../../support/core/scenario-library.ts';

const { report } = runLibraryScenario('abuser', 1, { duration: 20_000, warmup: 5000 });

const least = (value: number) => ({ is: '>=' as const, value });
const most = (value: number) => ({ is: '<=' as const, value });

test('each goal is evaluated by the metric of its name', () => {
  const goals = {
    goodput: least(report.goodput),
    waste: most(report.waste - 1e-9),
    wasted: most(report.counts.wasted),
    latency: { p99: most(0) },
    groups: { others: { served: least(0.5), latency: { p50: most(1e6) } } },
  };
  const others = report.groups.find(({ name }) => name === 'others');
  expect(evaluateGoals(report, goals, 0)).toEqual([
    { goal: 'goodput', bound: goals.goodput, unit: 'number', value: report.goodput, met: true },
    { goal: 'waste', bound: goals.waste, unit: 'number', value: report.waste, met: false },
    { goal: 'wasted', bound: goals.wasted, unit: 'number', value: report.counts.wasted, met: true },
    { goal: 'latency.p99', bound: goals.latency.p99, unit: 'ms', value: report.latency.p99, met: false },
    { goal: 'groups.others.served', bound: least(0.5), unit: 'number', value: others?.served, met: true },
    { goal: 'groups.others.latency.p50', bound: most(1e6), unit: 'ms', value: others?.latency.p50, met: true },
  ]);
});

test('a run that never settled misses its goal', () => {
  const dark: SimulationReport = { ...report, series: report.series.map((sample) => ({ ...sample, accepted: 0 })) };
  const [judged] = evaluateGoals(dark, { settled: most(1e9) }, 0);
  expect(judged).toMatchObject({ goal: 'settled', value: undefined, met: false });
  expect(evaluateGoals(report, { settled: most(20_000) }, 0)[0]?.met).toBe(true);
});

test('a run without successes misses its goals', () => {
  const counts = { ...report.counts, successes: 0 };
  const dark: SimulationReport = { ...report, counts, waste: Number.POSITIVE_INFINITY };
  const judged = evaluateGoals(dark, { waste: most(1e9), latency: { p99: most(1e9) } }, 0);
  expect(judged.map(({ goal, met }) => [goal, met])).toEqual([
    ['waste', false],
    ['latency.p99', false],
  ]);
});
