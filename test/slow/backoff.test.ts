import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type BackOffOptions,
  type BackOffStrategy,
  makeBackOff,
  strategyNames,
} from '../../src/core/backoff/strategies.ts';

/** Uniform on [0, 1), with extreme values more frequent. */
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

const real = (min: number, max: number) => fc.double({ min, max, noNaN: true });

/** Any valid options; a cap is up to 10⁴ base intervals. Only `doubling` rejects a base of 0: see the unit tests. */
const options: fc.Arbitrary<BackOffOptions> = fc
  .record(
    {
      baseInterval: fc.oneof(fc.integer({ min: 1, max: 5000 }), real(1e-3, 1e5)),
      multiplier: fc.oneof(fc.constant(2), real(1, 10)),
      headroom: fc.oneof(fc.constant(1), real(1, 100), real(1, 1e4)),
      jitter: real(0, 1),
      jitterInterval: real(0, 1e4),
      exponent: real(0, 400),
      table: fc.array(fc.integer({ min: 1, max: 1e6 }), { minLength: 1, maxLength: 8 }),
      slot: fc.oneof(fc.constant(0), real(1e-6, 1e3)),
    },
    { noNullPrototype: true },
  )
  .map(({ headroom, ...rest }) => ({ ...rest, maxInterval: rest.baseInterval * headroom }));

const retry = fc.oneof(
  fc.integer({ min: 0, max: 30 }),
  fc.integer({ min: 0, max: 1_000_000 }),
  fc.constantFrom(1022, 1023, 1024, 2 ** 31),
);

/** Delay n as an exchange reaches it, after at most `chances.length − 1` earlier delays, which bounds the memory. */
function drawDelay(backOff: BackOffStrategy, n: number, chances: readonly number[]): number | undefined {
  let memory = 0;
  let delay: number | undefined;
  for (const [i, u] of chances.entries()) {
    const step = n - (chances.length - 1) + i;
    if (step < 0) continue;
    const drawn = backOff.next(step, memory, () => u);
    delay = drawn?.delay;
    memory = drawn?.memory ?? memory;
  }
  return delay;
}

describe.each(strategyNames)('%s', (strategy) => {
  test('has finite delays within their band for any options, retry number and random draw', () => {
    fc.assert(
      fc.property(options, retry, fc.tuple(chance, chance, chance), (given, n, chances) => {
        const backOff = makeBackOff({ strategy, ...given });
        const delay = drawDelay(backOff, n, chances);
        const band = backOff.band(n);
        if (n >= backOff.retries) {
          expect(delay).toBeUndefined();
          expect(band).toBeUndefined();
          return;
        }
        expect(band).toBeDefined();
        const { min, mean, max } = band!;
        expect(Number.isFinite(delay)).toBe(true);
        expect(min).toBeGreaterThanOrEqual(0);
        expect(delay).toBeGreaterThanOrEqual(min);
        expect(delay).toBeLessThanOrEqual(max);
        expect(mean).toBeGreaterThanOrEqual(min);
        expect(mean).toBeLessThanOrEqual(max);
      }),
      { numRuns: strategy === 'decorrelated-jitter' ? 50 : 200 },
    );
  });

  test('has equal delays for equal random draws, however many requests share the strategy', () => {
    fc.assert(
      fc.property(options, fc.array(chance, { minLength: 1, maxLength: 20 }), (given, chances) => {
        const shared = makeBackOff({ strategy, ...given });
        const alone = makeBackOff({ strategy, ...given });
        let [memory, aloneMemory] = [0, 0];
        for (const [n, u] of chances.entries()) {
          const step = shared.next(n, memory, () => u);
          shared.next(n, memory, () => 1 - (u + 2 ** -53));
          const expected = alone.next(n, aloneMemory, () => u);
          expect(step).toEqual(expected);
          memory = step?.memory ?? 0;
          aloneMemory = expected?.memory ?? 0;
        }
      }),
      { numRuns: 50 },
    );
  });

  test('has the expected delay as the mean over evenly spaced draws', () => {
    fc.assert(
      fc.property(options, fc.integer({ min: 0, max: 24 }), (given, n) => {
        const backOff = makeBackOff({ strategy, ...given });
        fc.pre(n < backOff.retries);
        const { min, mean, max } = backOff.band(n)!;
        const average = averageDelay(backOff, n);
        expect(Math.abs(average - mean)).toBeLessThanOrEqual(0.01 * (max - min) + 1e-9 * max);
        expect(Math.abs(average - mean)).toBeLessThanOrEqual(0.05 * mean + 1e-9);
      }),
      { numRuns: 25 },
    );
  });
});

const SAMPLES = 4096;

/**
 * The mean of delay n over 4096 runs whose draws fill the unit square of (memory, chance) evenly: before each step the runs
 * are ordered by memory, and run i draws the i-th point of a lattice (L'Ecuyer's array-RQMC, without its shift).
 */
function averageDelay(backOff: BackOffStrategy, n: number): number {
  const golden = (Math.sqrt(5) - 1) / 2;
  let memories = new Float64Array(SAMPLES);
  let average = 0;
  for (let step = 0; step <= n; step += 1) {
    const steps = Array.from(memories, (memory, i) => {
      const u = (i * golden + 0.5 / SAMPLES) % 1;
      return backOff.next(step, memory, () => u)!;
    });
    average = steps.reduce((sum, { delay }) => sum + delay / SAMPLES, 0);
    memories = Float64Array.from(steps, ({ memory }) => memory).toSorted();
  }
  return average;
}
