import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeBackOff, strategyNames } from '../../src/core/backoff/strategies.ts';
import type { DeliverySchedule } from '../../src/core/delivery/delivery-schedule.ts';
import {
  MIN_DELIVERY_DELAY,
  makeBackOffSchedule,
  makeTableSchedule,
  nextAttemptAt,
} from '../../src/core/delivery/delivery-schedule.ts';
import type { Millis } from '../../src/core/scalars.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';

const DAY: Millis = 86_400_000;
const millis = (max: number) => fc.integer({ min: 1, max });

const backOffs = (maxTotal: Millis): fc.Arbitrary<DeliverySchedule> =>
  fc
    .record({
      strategy: fc.constantFrom(...strategyNames),
      baseInterval: millis(600_000),
      maxInterval: fc.integer({ min: 600_000, max: DAY }),
      slot: millis(60_000),
      total: millis(maxTotal),
    })
    .map(({ total, ...spec }) => makeBackOffSchedule(makeBackOff(spec), total));
const tables = fc.array(fc.integer({ min: 1000, max: DAY }), { minLength: 1, maxLength: 20 }).map(makeTableSchedule);

/** What happens to each attempt. */
const outcomes = fc.array(
  fc.record({ took: fc.nat(120_000), retryAfterMs: fc.option(fc.nat(2 * DAY), { nil: undefined }) }),
  { minLength: 1, maxLength: 60 },
);
const runs = (maxTotal: Millis) =>
  fc.record({ schedule: fc.oneof(backOffs(maxTotal), tables), outcomes, seed: fc.nat(2 ** 31 - 1) });

test('keeps every delay within its band, every Retry-After and the total', () => {
  fc.assert(
    fc.property(runs(5 * DAY), ({ schedule, outcomes: each, seed }) => {
      const random = seededRandom(seed);
      const firstAt = 1_700_000_000_000;
      const end = firstAt + schedule.total;
      let at = firstAt;
      for (const [i, { took, retryAfterMs }] of each.entries()) {
        const lastEndedAt = at + took;
        const next = nextAttemptAt(schedule, { attempts: i + 1, firstAt, lastEndedAt, retryAfterMs }, random);
        if (next === undefined) return;
        const band = schedule.band(i);
        if (band === undefined) throw new Error('an attempt without a delay');
        const earliest = lastEndedAt + band.min;
        const latest = Math.max(lastEndedAt + band.max, Math.min(lastEndedAt + (retryAfterMs ?? 0), end));
        // Sums of large times round.
        expect(next).toBeGreaterThanOrEqual(earliest - 0.001);
        expect(next).toBeLessThanOrEqual(latest + 0.001);
        expect(next).toBeGreaterThanOrEqual(Math.min(lastEndedAt + (retryAfterMs ?? 0), end));
        expect(next).toBeGreaterThanOrEqual(lastEndedAt + MIN_DELIVERY_DELAY);
        if (schedule.endsAfterTotal) expect(next).toBeLessThanOrEqual(end);
        at = next;
      }
    }),
    { numRuns: 1000 },
  );
});

test('ends, whatever the receiver asks for', () => {
  fc.assert(
    fc.property(runs(1_000_000), ({ schedule, outcomes: each, seed }) => {
      const random = seededRandom(seed);
      const most = schedule.endsAfterTotal ? 1 + schedule.total / MIN_DELIVERY_DELAY : 21;
      let attempts = 0;
      let at: Millis | undefined = 0;
      while (at !== undefined) {
        attempts += 1;
        expect(attempts).toBeLessThanOrEqual(most);
        const { took, retryAfterMs } = each[attempts % each.length] ?? { took: 0, retryAfterMs: undefined };
        at = nextAttemptAt(schedule, { attempts, firstAt: 0, lastEndedAt: at + took, retryAfterMs }, random);
      }
    }),
    { numRuns: 500 },
  );
});
