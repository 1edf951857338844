import type { Random } from '../core/exchange/attempt-outcome.ts';
import { seededRandom } from '../simulator/seeded-random.ts';

/** Chance for several parts of one experiment: each has a stream of its own, and all follow from the seed. */
export function streams(seed: number): () => Random {
  const seeds = seededRandom(seed);
  return () => seededRandom(Math.floor(seeds() * 2 ** 32) + 2 ** 32 * Math.floor(seeds() * 2 ** 20));
}
