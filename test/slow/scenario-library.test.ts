import { expect, test } from 'vitest';
import { scenarioNames } from '../../src/cli/bundled-scenarios.ts';
import { loadLibraryScenario, runLibraryScenario } from '../support/core/scenario-library.ts';

test.each(scenarioNames())('%s loads without a warning, has a description, and runs', (name) => {
  const scenario = loadLibraryScenario(name);
  expect(scenario.title).toMatch(/^[A-Z0-9].{5,70}$/);
  expect(scenario.about).toMatch(/[.?]\n$/);
  expect(Object.keys(scenario.goals)).not.toEqual([]);
  expect(scenario.warmup).toBeLessThan(scenario.duration);
  // Covers only the start of each, before the first of its steps, outages and pauses: other tests check the quality.
  const duration = name === 'million-clients' ? 250 : 4000;
  const { report } = runLibraryScenario(name, 1, { duration, warmup: 0 });
  expect(report.counts.successes).toBeGreaterThan(0);
  expect(report.series).toHaveLength(duration / 250);
});

test('equal seeds give equal runs, and different seeds different ones', () => {
  const run = (seed: number): string =>
    JSON.stringify(runLibraryScenario('priorities', seed, { duration: 15_000, warmup: 0 }));
  expect(run(3)).toBe(run(3));
  expect(run(4)).not.toBe(run(3));
});
