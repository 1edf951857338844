import { describe, expect, test } from 'vitest';
import { isApplicationLimited, isCalm, cubicGrowthRate } from '../../../src/core/rate/growth.ts';
import type { RateState } from '../../../src/core/rate/rate-state.ts';
import type { PerSecond } from '../../../src/core/scalars.ts';
import { rateState, recentSendHistory, sendEvenly } from '../../support/core/rate-builders.ts';

/** At a rate of 100, with this many requests sent in the last second. */
function isLimited(perSecond: PerSecond, queued: boolean, state: Partial<RateState>): boolean {
  const recent = sendEvenly(recentSendHistory(), perSecond, 1000, 2000);
  return isApplicationLimited(rateState({ rate: 100, ...state }), recent, 2000, queued);
}

describe('up to the ceiling', () => {
  const below = { growthElapsed: 2999, growthPeriod: 3000 };

  test('traffic is limited by demand below 0.6 of the rate', () => {
    expect(isLimited(59, false, below)).toBe(true);
    expect(isLimited(60, false, below)).toBe(false);
  });

  test('traffic is not limited by demand while requests queue, however few are sent', () => {
    expect(isLimited(1, true, below)).toBe(false);
  });
});

describe('beyond the ceiling', () => {
  const beyond = { growthElapsed: 3000, growthPeriod: 3000 };

  test('traffic is limited by demand unless 0.9 of the rate is used, to one request', () => {
    expect(isLimited(88, false, beyond)).toBe(true);
    expect(isLimited(89, false, beyond)).toBe(false);
  });

  test('traffic may be limited by demand even while requests queue, because a higher rate would be untested', () => {
    expect(isLimited(88, true, beyond)).toBe(true);
    expect(isLimited(89, true, beyond)).toBe(false);
  });

  test('traffic is never limited by demand below one request a second, where an unused rate looks the same', () => {
    expect(isLimited(0.001, false, { ...beyond, rate: 1 })).toBe(false);
  });
});

describe('the curve', () => {
  const at = (growthElapsed: number) =>
    cubicGrowthRate(rateState({ ceiling: 100, rateAfterDecrease: 60, growthPeriod: 4000, growthElapsed }));

  test('begins at the cut, and is flat at the ceiling', () => {
    expect(at(0)).toBe(60);
    expect(at(2000)).toBe(100 - 40 / 8);
    expect(at(4000)).toBe(100);
  });

  test('exceeds the ceiling by 5 % in half of K, and by 40 % in K', () => {
    expect(at(6000)).toBe(105);
    expect(at(8000)).toBe(140);
  });
});

test('a limit is calm after two minutes without a rejection and without a cut', () => {
  const state = rateState({ lastRejectedAt: 10_000, decreasedAt: 5000 });
  expect(isCalm(state, 130_000)).toBe(false);
  expect(isCalm(state, 130_001)).toBe(true);
  expect(isCalm({ ...state, decreasedAt: 20_000 }, 130_001)).toBe(false);
});
