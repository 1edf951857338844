import { describe, expect, test } from 'vitest';
import type { Blockade } from '../../src/core/rate/breaker/active-block.ts';
import {
  blockade,
  expectedEnd,
  isBlackout,
  isProof,
  planProbe,
  probeDelay,
  probeInterval,
  probeOverdue,
} from '../../src/core/rate/breaker/active-block.ts';
import { uncutOf } from '../../src/core/rate/decrease.ts';
import { ANYWHERE, sourceOf } from '../../src/core/rate/breaker/request-attributes.ts';
import type { Random } from '../../src/core/exchange/attempt-outcome.ts';
import { rateState } from '../support/rate-state.ts';

const MIDDLE: Random = () => 0.5;
const NOTHING = { retryAfter: undefined, source: undefined };

/** Begins at 1000, of 100 a second. */
function block(terms: Partial<Blockade> = {}): Blockade {
  const begun = blockade(
    {
      cause: 'rejections',
      scope: [...ANYWHERE],
      goodRate: 100,
      wasOpen: false,
      before: uncutOf(rateState()),
      isResumed: false,
      patience: 30_000,
      interval: probeInterval,
    },
    1000,
  );
  return { ...begun, ...terms };
}

describe('the interval between probes', () => {
  test('is 50 ms · 1.5ⁿ, at most 5 s', () => {
    expect([0, 1, 2, 3].map((n) => probeInterval(n, 100))).toEqual([50, 75, 112.5, 168.75]);
    expect(probeInterval(11, 100)).toBeCloseTo(50 * 1.5 ** 11, 9); // 4325 ms
    expect([12, 16, 1000].map((n) => probeInterval(n, 100))).toEqual([5000, 5000, 5000]);
  });

  test('begins with no less than what passed before took from one to the next', () => {
    expect(probeInterval(0, 20)).toBe(50);
    expect(probeInterval(0, 5)).toBe(200);
    expect(probeInterval(2, 5)).toBe(450);
    expect(probeInterval(0, 0.1)).toBe(5000);
    expect(probeInterval(0, Number.POSITIVE_INFINITY)).toBe(50);
  });
});

describe('the next probe', () => {
  test('goes after the interval · U(0.75, 1.25)', () => {
    for (const [u, at] of [
      [0, 1037.5],
      [0.5, 1050],
      [0.999_999, 1062.499_975],
    ] as const) {
      const planned = block();
      planProbe(planned, NOTHING, 30_000, 1000, () => u);
      expect(planned.probeAt).toBeCloseTo(at, 6);
    }
  });

  test('never goes before the upstream asks for it, and 10 ms', () => {
    const planned = block();
    planProbe(planned, { ...NOTHING, retryAfter: 700 }, 30_000, 1000, MIDDLE);
    expect(planned.probeAt).toBe(1710);
    planProbe(planned, { ...NOTHING, retryAfter: 20 }, 30_000, 1100, MIDDLE); // 50 ms would be 1150: what was asked for before still holds
    expect(planned.probeAt).toBe(1710);
  });

  test('goes at once, if it is the first, to others than the client that was asked', () => {
    const planned = block();
    const asked = sourceOf('a', 'a', 0, '/', '');
    planProbe(planned, { retryAfter: 300_000, source: asked }, 30_000, 1000, MIDDLE);
    expect(probeDelay(planned, 1000, sourceOf('b', 'b', 0, '/', ''))).toBe(50);
    expect(probeDelay(planned, 1000, asked)).toBe(300_010);
  });

  test('goes no later than it may, whatever the upstream asks for; but is not of the client that was asked', () => {
    const planned = block({ probes: 1 });
    const asked = sourceOf('a', 'a', 0, '/', '');
    planProbe(planned, { retryAfter: 300_000, source: asked }, 30_000, 1000, MIDDLE);
    expect(probeDelay(planned, 1000)).toBe(30_000);
    expect(probeDelay(planned, 1000, sourceOf('b', 'b', 0, '/', ''))).toBe(30_000);
    expect(probeDelay(planned, 1000, asked)).toBe(300_010);
    expect(expectedEnd(planned, 1000, asked)).toBe(300_010);
    planProbe(planned, NOTHING, 2000, 40_000, MIDDLE);
    expect(probeDelay(planned, 40_000, asked)).toBe(261_010); // it still holds
  });

  test('may go when it is due and none is out', () => {
    const planned = block({ probeAt: 1050 });
    expect([1000, 1050, 1300].map((now) => probeDelay(planned, now))).toEqual([50, 0, 0]);
    expect([1000, 1050, 1300].map((now) => probeOverdue(planned, now))).toEqual([0, 0, 250]);
  });

  test('waits for the one that is out, for up to 30 s', () => {
    const out = block({ probeAt: 1050, probeSentAt: 1060 });
    expect([1060, 31_059, 31_060].map((now) => probeDelay(out, now))).toEqual([30_000, 1, 0]);
    expect(probeOverdue(out, 20_000)).toBe(0);
  });
});

describe('the end of a blockade', () => {
  test('is expected with the next probe; while one is out, with the one after it', () => {
    expect(expectedEnd(block({ probeAt: 1050 }), 1020)).toBe(30);
    expect(expectedEnd(block({ probeAt: 1050, probeSentAt: 1060, probes: 1 }), 1100)).toBe(1060 + 112.5 - 1100);
    expect(expectedEnd(block({ probeAt: 1050, probeSentAt: 1060 }), 9000)).toBe(9000 - 1135);
    expect(expectedEnd(block({ probeAt: 1050, probeSentAt: 1060 }), 31_000)).toBe(60);
  });

  test('of rejections is proven by any answer to what left after it began; of errors by a probe alone', () => {
    const rejected = block({ probeAt: 1050 });
    expect([999, 1000, 1001, 1050].map((at) => isProof(rejected, at))).toEqual([false, false, true, true]);
    const failed = block({ cause: 'errors', probeAt: 1050 });
    expect([1001, 1049, 1050].map((at) => isProof(failed, at))).toEqual([false, false, true]);
  });
});

test('three rejections in a row say that nothing gets through', () => {
  expect([0, 2, 3, 9].map((rejectedInRow) => isBlackout(rateState({ rejectedInRow })))).toEqual([
    false,
    false,
    true,
    true,
  ]);
});
