import type { Random } from '../core/scalars.ts';
import { seededRandom } from '../simulator/seeded-random.ts';

/** Random streams for the parts of one experiment, all derived from one seed. */
export function randomStreams(seed: number): () => Random {
  const seeds = seededRandom(seed);
  return () => seededRandom(Math.floor(seeds() * 2 ** 32) + 2 ** 32 * Math.floor(seeds() * 2 ** 20));
}
