/** Accounts whose limits are unknown and unequal: the proxy uses what all of them allow together. */
import { expect, test } from 'vitest';
import { runLibraryScenario } from '../support/core/scenario-library.ts';

/** Measured in the three minutes of the file: goodput 1.000, waste 0.0049, Jain 0.9998; the same with each way to share limits. */
test.each([
  ['in one process', {}, [1, 2, 3, 4, 5]],
  ['in four workers', { replicas: 4, lease: 0.1, duration: 90_000 }, [1]],
  ['in four replicas over a pool', { replicas: 4, pool: 1, duration: 90_000 }, [1, 2]],
] as const)('five-accounts: uses the sum of all limits at twice that load, %s', (_, changes, seeds) => {
  for (const seed of seeds) {
    const { report } = runLibraryScenario('five-accounts', seed, changes);
    expect(report.goodput).toBeGreaterThanOrEqual(0.97);
    expect(report.waste).toBeLessThanOrEqual(0.01);
    expect(report.failures).toBe(0);
    expect(report.jain).toBeGreaterThanOrEqual(0.99);
  }
});
