/** Requests of different costs at a limit of units. The bounds leave room for chance. */
import { expect, test } from 'vitest';
import { missedGoals, runLibraryScenario } from '../support/core/scenario-library.ts';

// Measured at these seeds: 0.996, 0.998.
test('costs: uses at least 0.97 of the units, and gives each client the same, though only responses name the costs', () => {
  for (const seed of [1, 2, 3]) {
    const run = runLibraryScenario('costs', seed);
    expect(run.report.goodput).toBeGreaterThanOrEqual(0.97);
    expect(run.report.jain).toBeGreaterThanOrEqual(0.99);
    expect(missedGoals(run)).toEqual([]);
  }
});
