import type { Random } from '../core/scalars.ts';

/** A deterministic generator of random numbers: sfc32 (Chris Doty-Humphrey, PractRand), 2³² values, seeded by one number. */
export function seededRandom(seed: number): Random {
  let a = 0;
  let b = seed | 0;
  let c = Math.floor(seed / 2 ** 32) | 0;
  let counter = 1;
  function next(): number {
    const t = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return (t >>> 0) / 2 ** 32;
  }
  // The author's own seeding: the state is well mixed after twelve rounds.
  for (let i = 0; i < 12; i += 1) next();
  return next;
}
