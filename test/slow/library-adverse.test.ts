/** Upstreams whose rejections are late or unrelated to the rate, or whose limit differed for a while. */
import { expect, test } from 'vitest';
import { missedGoals, runLibraryScenario } from '../support/core/scenario-library.ts';

test.each(['noise', 'loud-noise', 'shared-quota', 'deep-dip', 'far-away'])('%s: the rate recovers', (name) => {
  for (const seed of [1, 2]) expect(missedGoals(runLibraryScenario(name, seed))).toEqual([]);
});
