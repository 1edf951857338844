import { describe, expect, test } from 'vitest';
import { renderSimulationReport } from '../../../src/cli/render-simulation-report.ts';
import { countTicks, timeTicks } from '../../../src/simulator/report/axis-ticks.ts';
import { downsample, meanValue } from '../../../src/simulator/report/downsample.ts';
import { drawReport } from '../../../src/simulator/report/draw-report.ts';
import { runLibraryScenario } from '../../support/core/scenario-library.ts';

const labels = (ticks: readonly { readonly label: string }[]): string[] => ticks.map(({ label }) => label);

test('ticks are round numbers up to the maximum or beyond', () => {
  expect(labels(countTicks(0))).toEqual(['0', '0.5', '1']);
  expect(labels(countTicks(100))).toEqual(['0', '50', '100']);
  expect(labels(countTicks(312))).toEqual(['0', '100', '200', '300', '400']);
  expect(labels(countTicks(50_001))).toEqual(['0', '20k', '40k', '60k']);
  expect(labels(timeTicks(60_000)).at(-1)).toBe('60 s');
  expect(labels(timeTicks(600_000))).toContain('5 min');
  expect(labels(timeTicks(86_400_000)).slice(0, 3)).toEqual(['0', '2 h', '4 h']);
});

describe('merged samples', () => {
  const { series } = runLibraryScenario('token-bucket', 1, { duration: 60_000, warmup: 0 }).report;

  test('contain every sample, in as many intervals as fit', () => {
    for (const [least, most] of [
      [4, 360],
      [1, 7],
      [1, 1000],
    ] as const) {
      const stretches = downsample(series, least, most);
      expect(stretches.length).toBeLessThanOrEqual(most);
      expect(stretches.flatMap(({ samples }) => samples)).toEqual(series);
      expect(stretches.map(({ from }) => from)).toEqual([0, ...stretches.slice(0, -1).map(({ at }) => at)]);
    }
  });

  test('have an unlimited rate if their samples have one', () => {
    const [first] = downsample(series, 4, 360);
    expect(first === undefined ? 0 : meanValue(first, () => Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('a drawing', () => {
  const { report } = runLibraryScenario('outage', 1);
  const svg = drawReport('a < b & c', report, 20_000);

  test('is one self-contained document that contains no NaN, Infinity or undefined', () => {
    expect(svg.startsWith('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 ')).toBe(true);
    expect(svg).toContain('a &lt; b &amp; c');
    expect(svg).not.toMatch(/NaN|Infinity|undefined|href/);
    expect(svg).toContain('prefers-color-scheme: dark');
    const open = [...svg.matchAll(/<([a-z]+)(?:\s[^>]*)?(?<!\/)>/g)].map(([, tag = '']) => tag);
    const close = [...svg.matchAll(/<\/([a-z]+)>/g)].map(([, tag = '']) => tag);
    expect(close.toSorted()).toEqual(open.toSorted());
  });

  test('shows rate, limit and accepted; queue; waste, each with its unit', () => {
    for (const text of [
      'requests a second',
      'requests waiting',
      'wasted attempts a second',
      'limit of the upstream',
      '60 s',
      'warm-up',
    ]) {
      expect(svg).toContain(text);
    }
    expect(svg.match(/<path /g)).toHaveLength(5);
  });

  test('omits the limit of an upstream that has none', () => {
    const { report: open } = runLibraryScenario('open', 1, { duration: 20_000 });
    expect(drawReport('open', open, 0)).not.toContain('class="limit"');
  });
});

describe('a report in a terminal', () => {
  const { report, goals } = runLibraryScenario('abuser', 1, { duration: 40_000, warmup: 10_000 });

  test.each([20, 60, 80, 500])('fits %i columns, or the smallest or largest legible width', (width) => {
    const text = renderSimulationReport({ title: 'Title', report, goals }, width);
    const longest = Math.max(...text.split('\n').map((line) => line.length));
    expect(longest).toBeLessThanOrEqual(Math.max(60, Math.min(120, width)));
    expect(text).toContain('abuser: Title');
    expect(text).toMatch(/met {5}goodput >= 0\.950: |MISSED {2}goodput/);
    expect(text).toMatch(/others +\d+ /);
  });

  test('shows the share of each group that was served, and the groups beyond the fourth as one', () => {
    const { report: shared } = runLibraryScenario('abuser', 1, { duration: 30_000, warmup: 10_000 });
    expect(drawReport('shared', shared, 0)).toMatch(/successes a second.*>abuser<.*>others</s);
    const [group] = shared.groups;
    if (group === undefined) throw new Error('no group');
    const groups = Array.from({ length: 7 }, (_, i) => ({ ...group, name: `<g${i}>` }));
    const series = shared.series.map((sample) => ({ ...sample, served: [1, 2, 3, 4, 5, 6, 7] }));
    const drawn = drawReport('many', { ...shared, groups, series }, 0);
    expect(drawn.match(/>&lt;g\d&gt;</g)).toHaveLength(4);
    expect(drawn).toContain('>3 more<');
    expect(drawReport('one', { ...shared, groups: [group] }, 0)).not.toContain('successes a second');
  });

  test('shows the wait at the upstream and abandoned attempts where there are any', () => {
    const { report: quick } = runLibraryScenario('token-bucket', 1, { duration: 30_000, warmup: 10_000 });
    const slow = { ...quick, upstreamWait: { p50: 20, p99: 300 }, counts: { ...quick.counts, abandoned: 17 } };
    const render = (of: typeof quick) => renderSimulationReport({ title: 'Title', report: of, goals: [] }, 80);
    expect(render(quick)).not.toMatch(/waited|abandoned/);
    expect(render(slow)).toMatch(/waited p50 +20ms\s+waited p99 +300ms.*abandoned +17/s);
  });
});
