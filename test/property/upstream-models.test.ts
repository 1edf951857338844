import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readHints } from '../../src/core/hints/read-hints.ts';
import { hintHeaders } from '../../src/simulator/practice/hint-headers.ts';
import type { HintStyle } from '../../src/config/schema/hint-styles.ts';
import { HINT_STYLES } from '../../src/config/schema/hint-styles.ts';
import { buildHints, includesQuota } from '../../src/simulator/upstream/hint-style.ts';
import type { LimitModelSpec } from '../../src/simulator/limit-models/limit-model-spec.ts';
import { makeLimitModel } from '../../src/simulator/limit-models/limit-model-spec.ts';
import { expectWithin } from '../support/expect-within.ts';

const rate = fc.double({ min: 0.1, max: 2000, noNaN: true });
const burst = fc.integer({ min: 1, max: 50 });
const limit = fc.integer({ min: 1, max: 40 });
const window = fc.double({ min: 1, max: 5000, noNaN: true });

const buckets = fc.record({ kind: fc.constantFrom('token-bucket' as const, 'gcra' as const), rate, burst });
const fixed = fc.record({ kind: fc.constant('fixed-window' as const), limit, window });
const sliding = fc.record({
  kind: fc.constantFrom('sliding-window' as const, 'sliding-window-counting' as const),
  limit,
  window,
});
const concurrency = fc.record({ kind: fc.constant('concurrency' as const), limit });
const anyModel: fc.Arbitrary<LimitModelSpec> = fc.oneof(buckets, fixed, sliding, concurrency);

/** Arrival times in bursts and pauses, possibly far from the origin. */
const arrivals = fc
  .tuple(
    fc.constantFrom(0, 1, 12_345.678, 1e9),
    fc.array(
      fc.oneof(
        fc.constant(0),
        fc.double({ min: 0, max: 20, noNaN: true }),
        fc.double({ min: 0, max: 6000, noNaN: true }),
      ),
      { maxLength: 200, size: 'max' },
    ),
  )
  .map(([origin, gaps]) => {
    let now = origin;
    return gaps.map((gap) => (now += gap));
  });

function acceptedAt(spec: LimitModelSpec, times: readonly number[]): number[] {
  const model = makeLimitModel(spec);
  return times.filter((now) => model.tryAcquire(now).accepted);
}

/** The error of floating-point times far from the origin. */
const CLOSE = 1e-5;

describe('for any arrivals', () => {
  test('a bucket admits at most burst + rate × time between any two arrivals', () => {
    fc.assert(
      fc.property(buckets, arrivals, (spec, times) => {
        const accepted = acceptedAt(spec, times);
        for (const [i, from] of accepted.entries()) {
          for (const [j, to] of accepted.entries()) {
            if (j < i) continue;
            expectWithin(j - i + 1, 1, spec.burst + ((to - from + CLOSE) * spec.rate) / 1000);
          }
        }
      }),
    );
  });

  test('a bucket and the GCRA admit the same requests', () => {
    // Whole rates and times are exact, so both limiters have an edge on the same side.
    const whole = fc.record({ rate: fc.constantFrom(1, 2, 5, 10, 50, 100, 1000), burst });
    const ticks = fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 200, size: 'max' });
    fc.assert(
      fc.property(whole, ticks, (numbers, gaps) => {
        let now = 0;
        const times = gaps.map((gap) => (now += gap));
        expect(acceptedAt({ kind: 'gcra', ...numbers }, times)).toEqual(
          acceptedAt({ kind: 'token-bucket', ...numbers }, times),
        );
      }),
    );
  });

  test('a fixed window admits at most its limit between two multiples of its length', () => {
    fc.assert(
      fc.property(fixed, arrivals, (spec, times) => {
        const counts = new Map<number, number>();
        for (const at of acceptedAt(spec, times)) {
          const index = Math.floor((at + 1e-6) / spec.window);
          counts.set(index, (counts.get(index) ?? 0) + 1);
        }
        for (const count of counts.values()) expect(count).toBeLessThanOrEqual(spec.limit);
      }),
    );
  });

  test('a sliding window admits at most its limit in any window', () => {
    fc.assert(
      fc.property(sliding, arrivals, (spec, times) => {
        const accepted = acceptedAt(spec, times);
        for (let i = spec.limit; i < accepted.length; i += 1) {
          expect((accepted[i] ?? 0) - (accepted[i - spec.limit] ?? 0)).toBeGreaterThanOrEqual(spec.window - CLOSE);
        }
      }),
    );
  });

  test('a limiter that counts refusals admits no request that one without refuses', () => {
    fc.assert(
      fc.property(sliding, arrivals, (spec, times) => {
        const lenient = acceptedAt({ ...spec, kind: 'sliding-window' }, times).length;
        const strict = acceptedAt({ ...spec, kind: 'sliding-window-counting' }, times).length;
        expect(strict).toBeLessThanOrEqual(lenient);
      }),
    );
  });

  test('no more requests are in flight than there are places', () => {
    fc.assert(
      fc.property(concurrency, fc.array(fc.boolean(), { maxLength: 200, size: 'max' }), (spec, comings) => {
        const model = makeLimitModel(spec);
        let inFlight = 0;
        for (const comes of comings) {
          if (comes && model.tryAcquire(0).accepted) inFlight += 1;
          if (!comes && inFlight > 0) {
            model.release(0);
            inFlight -= 1;
          }
          expect(inFlight).toBeLessThanOrEqual(spec.limit);
          expect(model.quota(0)?.remaining).toBe(spec.limit - inFlight);
        }
      }),
    );
  });

  test('the remaining count is whole, non-negative and exact', () => {
    fc.assert(
      fc.property(anyModel, arrivals, (spec, times) => {
        const model = makeLimitModel(spec);
        for (const now of times) {
          const remaining = model.quota(now)?.remaining ?? Number.NaN;
          expect(Number.isSafeInteger(remaining)).toBe(true);
          expect(remaining).toBeGreaterThanOrEqual(0);
          expect(model.tryAcquire(now).accepted).toBe(remaining > 0);
        }
      }),
    );
  });

  test('a client that returns after the announced wait is admitted if no other client arrived', () => {
    fc.assert(
      fc.property(fc.oneof(buckets, fixed, sliding), arrivals, (spec, times) => {
        const model = makeLimitModel(spec);
        for (const now of times) {
          const admission = model.tryAcquire(now);
          if (admission.accepted) continue;
          expect(admission.retryAfterMs).toBeGreaterThan(0);
          expect(model.tryAcquire(now + admission.retryAfterMs)).toEqual({ accepted: true });
          return;
        }
      }),
    );
  });

  test('the remaining count stays exact while the limit changes', () => {
    const changes = fc.array(fc.tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 1, max: 60 })), {
      maxLength: 100,
      size: 'max',
    });
    fc.assert(
      fc.property(anyModel, changes, (spec, steps) => {
        const model = makeLimitModel(spec);
        let now = 0;
        for (const [i, [gap, number]] of steps.entries()) {
          now += gap;
          if (i % 5 === 4) model.setLimit(number, now);
          const remaining = model.quota(now)?.remaining ?? Number.NaN;
          expect(remaining).toBeGreaterThanOrEqual(0);
          expect(model.tryAcquire(now).accepted).toBe(remaining > 0);
        }
      }),
    );
  });
});

test('the headers of every style are parsed into the hints that the simulator returns', () => {
  const styles = fc.constantFrom<HintStyle[]>(...HINT_STYLES);
  const epochs = fc.double({ min: 1.7e12, max: 1.9e12, noNaN: true });
  fc.assert(
    fc.property(styles, anyModel, arrivals, epochs, (style, spec, times, epoch) => {
      const model = makeLimitModel(spec);
      for (const now of times) {
        const admission = model.tryAcquire(now);
        const wait = admission.accepted ? undefined : admission.retryAfterMs;
        const quota = includesQuota(style) ? model.quota(now) : undefined;
        const read = readHints(admission.accepted ? 200 : 429, hintHeaders(style, wait, quota, epoch), epoch);
        expect(read).toEqual(buildHints(style, wait, quota, epoch));
      }
    }),
  );
});
