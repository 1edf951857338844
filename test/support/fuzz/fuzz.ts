import { performance } from 'node:perf_hooks';
import fc from 'fast-check';
import type { Random } from '../../../src/core/scalars.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';

/** Seconds that each fuzzer runs, in place of a number of cases: `npm run fuzz`. */
const SECONDS = Number(process.env['TIDEGATE_FUZZ'] ?? 0);

/** Timeout of a fuzz test in milliseconds. */
export const FUZZ_TIMEOUT = 60_000 + 2000 * SECONDS;

/** Cases for each seed that fast-check draws and reports; drawing every case with fast-check would take longer than testing. */
const BATCH = 1000;

/**
 * Runs a number of cases, or as many as the time allows. Prints how many; after a failure also fast-check's seed and the
 * case.
 * @returns the number of cases
 */
export function fuzz(cases: number, tryCase: (random: Random) => void): number {
  const until = performance.now() + 1000 * SECONDS;
  let tried = 0;
  const batch = fc.property(fc.integer({ min: 0 }), (seed) => {
    const random = seededRandom(seed);
    for (let i = 0; i < Math.min(BATCH, cases); i += 1) tryCase(random);
    tried += Math.min(BATCH, cases);
  });
  do fc.assert(batch, { numRuns: Math.max(1, Math.ceil(cases / BATCH)), endOnFailure: true });
  while (performance.now() < until);
  return tried;
}

/** Like `fuzz`, for slow cases: repeats until the time is over. @param seconds default without TIDEGATE_FUZZ */
export async function fuzzFor(
  seconds: number,
  { seed, turn }: { seed: number; turn: (random: Random) => Promise<void> },
): Promise<void> {
  const random = seededRandom(SECONDS > 0 ? seed + Date.now() : seed);
  const until = performance.now() + 1000 * Math.max(seconds, SECONDS);
  do await turn(random);
  while (performance.now() < until);
}
