import { performance } from 'node:perf_hooks';
import fc from 'fast-check';
import type { Random } from '../../src/core/exchange/attempt-outcome.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';

/** Seconds that each fuzzer runs, instead of its number of cases: `npm run fuzz`. */
const SECONDS = Number(process.env['TIDEGATE_FUZZ'] ?? 0);

/** What a test that fuzzes may take, in milliseconds. */
export const FUZZ_TIMEOUT = 60_000 + 2000 * SECONDS;

/** Of one seed, which fast-check draws and tells when one fails; drawing more from it than that would cost more than what is tried. */
const BATCH = 1000;

/**
 * Tries so many cases, or as many as there is time for. Says how many, and after a failure which seed of fast-check's
 * and which case it was.
 * @returns how many
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

/** The same for what takes its time: turns until the time is over. @param seconds unless the environment says another */
export async function fuzzFor(
  seconds: number,
  { seed, turn }: { seed: number; turn: (random: Random) => Promise<void> },
): Promise<void> {
  const random = seededRandom(SECONDS > 0 ? seed + Date.now() : seed);
  const until = performance.now() + 1000 * Math.max(seconds, SECONDS);
  do await turn(random);
  while (performance.now() < until);
}
