import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backoffs } from '../../src/library/backoffs.ts';
import { failureOf, retry } from '../../src/library/retry.ts';
import { RetryBudget } from '../../src/library/retry-budget.ts';
import { strategyNames } from '../../src/core/backoff/strategies.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { firstOf } from '../support/first-of.ts';
import { virtualClock } from '../support/core/virtual-clock.ts';

const name = fc.constantFrom(...strategyNames);

test('makes no more attempts than allowed, never waits beyond the deadline, and leaves no state behind', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        name,
        attempts: fc.integer({ min: 1, max: 12 }),
        timeout: fc.option(fc.integer({ min: 1, max: 30_000 }), { nil: undefined }),
        perTryTimeout: fc.option(fc.integer({ min: 1, max: 500 }), { nil: undefined }),
        burst: fc.integer({ min: 0, max: 8 }),
        failures: fc.array(fc.constantFrom('fails', 'hangs', 'asks'), { maxLength: 12 }),
        seed: fc.integer(),
      }),
      async ({ name: backOff, failures, burst, seed, ...bounds }) => {
        const clock = virtualClock();
        const since = clock.now();
        const budget = new RetryBudget({ ratio: 0, burst });
        let calls = 0;
        const ended = await retry(
          ({ attempt }) => {
            calls += 1;
            expect(attempt).toBe(calls);
            if (bounds.timeout !== undefined) expect(clock.now()).toBeLessThan(since + bounds.timeout);
            const how = failures[attempt - 1];
            if (how === undefined) return 'done';
            // Without a timeout the attempt would never end.
            if (how === 'hangs' && (bounds.timeout ?? bounds.perTryTimeout) !== undefined) {
              return new Promise<string>(() => undefined);
            }
            throw Object.assign(new Error(how), how === 'asks' ? { retryAfter: 700 } : {});
          },
          { ...bounds, backOff, budget, clock, random: seededRandom(seed) },
        ).catch((error: unknown) => error);
        expect(calls).toBeLessThanOrEqual(Math.min(bounds.attempts, burst + 1));
        expect(calls).toBeGreaterThanOrEqual(1);
        if (ended !== 'done') expect(failureOf(ended)).toMatchObject({ attempts: calls });
        if (bounds.timeout !== undefined) expect(clock.now()).toBeLessThanOrEqual(since + bounds.timeout);
        expect(clock.pending()).toBe(0);
      },
    ),
    { numRuns: 300 },
  );
});

test('waits the delays of the strategy, each within its band', async () => {
  await fc.assert(
    fc.asyncProperty(name, fc.integer(), async (strategy, seed) => {
      const clock = virtualClock();
      const fail = (): Promise<never> => Promise.reject(new Error('again'));
      await retry(fail, {
        attempts: 9,
        backOff: strategy,
        clock,
        random: seededRandom(seed),
      }).catch(() => undefined);
      const delays = firstOf(backoffs[strategy].delays({}, seededRandom(seed)), 8);
      expect(clock.waits).toEqual(delays);
      const made = backoffs[strategy].make();
      for (const [n, delay] of delays.entries()) {
        const band = made.band(n);
        expect(delay).toBeGreaterThanOrEqual(band?.min ?? Number.NaN);
        expect(delay).toBeLessThanOrEqual(band?.max ?? Number.NaN);
      }
    }),
  );
});
