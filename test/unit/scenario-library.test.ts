import { expect, test } from 'vitest';
import { scenarioNames } from '../../src/cli/bundled-scenarios.ts';
import { loadLibrary, runLibrary } from '../support/library.ts';

test.each(scenarioNames())('%s loads without a warning, says what it is, and runs', (name) => {
  const scenario = loadLibrary(name);
  expect(scenario.title).toMatch(/^[A-Z0-9].{5,70}$/);
  expect(scenario.about).toMatch(/[.?]\n$/);
  expect(Object.keys(scenario.goals)).not.toEqual([]);
  expect(scenario.warmup).toBeLessThan(scenario.duration);
  // Its first moments: how good it becomes is told elsewhere.
  const duration = name === 'million-clients' ? 500 : 10_000;
  const { report } = runLibrary(name, 1, { duration, warmup: 0 });
  expect(report.counts.successes).toBeGreaterThan(0);
  expect(report.series).toHaveLength(duration / 250);
});

test('the same seed gives the same run, and another seed another', () => {
  const run = (seed: number): string => JSON.stringify(runLibrary('priorities', seed, { duration: 15_000, warmup: 0 }));
  expect(run(3)).toBe(run(3));
  expect(run(4)).not.toBe(run(3));
});
