/** Limits that announce themselves, and limits configured before the first request. */
import { expect, test } from 'vitest';
import type { SimulationReport } from '../../src/simulator/report/simulation-report.ts';
import {
  countBetween,
  loadLibraryScenario,
  missedGoals,
  runLibraryScenario,
} from '../support/core/scenario-library.ts';

/** As much as shows the figures of the three minutes of the files. */
const SPAN = { warmup: 30_000, duration: 90_000 };

/** `seen` are the least goodput and the most waste of eight seeds. */
const HINTS = [
  { name: 'retry-after-hints', goodput: 0.92, waste: 0.01, seen: [0.954, 0.0075] },
  { name: 'retry-after-dates', goodput: 0.9, waste: 0.01, seen: [0.931, 0.0077] },
] as const;

test.each(HINTS)('$name: waits as long as a 429 requests', ({ name, goodput, waste }) => {
  for (const seed of [1, 2, 3]) {
    const { report } = runLibraryScenario(name, seed, SPAN);
    expect(report.goodput).toBeGreaterThanOrEqual(goodput);
    expect(report.waste).toBeLessThanOrEqual(waste);
  }
});

/** Measured goodput: 0.993, and 0.983 without the length of the window. */
test.each(['minute-window-hints', 'minute-window-x-hints'])(
  '%s: uses a long window whose remainder is announced, and never exceeds it',
  (name) => {
    for (const seed of [1, 2, 3]) {
      const run = runLibraryScenario(name, seed, { duration: 300_000 });
      expect(run.report.counts.wasted).toBe(0);
      expect(missedGoals(run)).toEqual([]);
    }
  },
);

test.each([
  ['known-limit', 95],
  ['told-limit', 95],
  ['known-provider', 95],
])('%s: uses a known limit from the first second on', (name, least) => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const run = runLibraryScenario(name, seed, { duration: 30_000 });
    expect(countBetween(run.report, 'wasted', [0, 10_000])).toBe(0);
    expect(Math.min(...acceptedEachSecond(run.report))).toBeGreaterThanOrEqual(least);
    expect(missedGoals(run)).toEqual([]);
  }
});

test('known-provider: without the preset, needs the first seconds to find the limit', () => {
  const { policy } = loadLibraryScenario('known-provider');
  const { initialRate, ...rateLimit } = policy.rateLimit;
  expect(initialRate).toBe(100);
  for (const seed of [1, 2, 3]) {
    const { report } = runLibraryScenario('known-provider', seed, {
      duration: 30_000,
      policy: { ...policy, rateLimit },
    });
    // Measured: 400 to 510 of 1000.
    expect(countBetween(report, 'accepted', [0, 10_000])).toBeLessThan(700);
    expect(countBetween(report, 'wasted', [0, 10_000])).toBeGreaterThan(0);
  }
});

function acceptedEachSecond(report: SimulationReport): number[] {
  const seconds = Math.floor((report.series.at(-1)?.at ?? 0) / 1000);
  return Array.from({ length: seconds }, (_, i) => countBetween(report, 'accepted', [1000 * i, 1000 * (i + 1)]));
}
