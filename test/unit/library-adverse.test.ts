/** What comes of upstreams whose rejections are late, not about our rate, or of a limit that was another for a while. */
import { expect, test } from 'vitest';
import { missedGoals, runLibrary } from '../support/library.ts';

test.each(['noise', 'loud-noise', 'shared-quota', 'deep-dip', 'far-away'])(
  '%s: the rate is not taken down for good',
  (name) => {
    for (const seed of [1, 2]) expect(missedGoals(runLibrary(name, seed))).toEqual([]);
  },
);
