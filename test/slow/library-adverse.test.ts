/** Upstreams whose rejections are late or unrelated to the rate, or whose limit differed for a while. */
import { expect, test } from 'vitest';
import { missedGoals, runLibraryScenario } from '../support/core/scenario-library.ts';

// Those that recover for many minutes run for all the time of their files.
test.each([
  { name: 'noise', span: {} },
  { name: 'loud-noise', span: { duration: 360_000 } },
  { name: 'shared-quota', span: { duration: 300_000 } },
  { name: 'deep-dip', span: {} },
  { name: 'far-away', span: { duration: 180_000 } },
])('$name: the rate recovers', ({ name, span }) => {
  for (const seed of [1, 2]) expect(missedGoals(runLibraryScenario(name, seed, span))).toEqual([]);
});

test('slow-service-timeouts: the service works for requests that are still waited for', () => {
  for (const seed of [1, 2]) expect(missedGoals(runLibraryScenario('slow-service-timeouts', seed, {}))).toEqual([]);
});
