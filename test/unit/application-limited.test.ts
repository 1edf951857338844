import { describe, expect, test } from 'vitest';
import { isApplicationLimited, isCalm, rateOnCurve } from '../../src/core/rate/growth.ts';
import type { RateState } from '../../src/core/rate/rate-state.ts';
import type { PerSecond } from '../../src/core/exchange/attempt-outcome.ts';
import { rateState, recentAccount, sendEvenly } from '../support/rate-state.ts';

/** Of a rate of 100, so many were sent in the last second. */
function isLimited(perSecond: PerSecond, queued: boolean, state: Partial<RateState>): boolean {
  const recent = sendEvenly(recentAccount(), perSecond, 1000, 2000);
  return isApplicationLimited(rateState({ rate: 100, ...state }), recent, 2000, queued);
}

describe('back to where the limit was felt', () => {
  const below = { grown: 2999, growFor: 3000 };

  test('demand is the limit below 0.6 of the rate', () => {
    expect(isLimited(59, false, below)).toBe(true);
    expect(isLimited(60, false, below)).toBe(false);
  });

  test('it is not while something queues, however little is sent', () => {
    expect(isLimited(1, true, below)).toBe(false);
  });
});

describe('beyond it', () => {
  const beyond = { grown: 3000, growFor: 3000 };

  test('demand is the limit unless 0.9 of the rate are used up, to one request', () => {
    expect(isLimited(88, false, beyond)).toBe(true);
    expect(isLimited(89, false, beyond)).toBe(false);
  });

  test('even while something queues: a higher rate would be believed that nobody has tried', () => {
    expect(isLimited(88, true, beyond)).toBe(true);
    expect(isLimited(89, true, beyond)).toBe(false);
  });

  test('never at a rate below one a second, which cannot be told from unused', () => {
    expect(isLimited(0.001, false, { ...beyond, rate: 1 })).toBe(false);
  });
});

describe('the curve', () => {
  const at = (grown: number) => rateOnCurve(rateState({ ceiling: 100, rateAtCut: 60, growFor: 4000, grown }));

  test('begins at the cut, and is flat where the limit was felt', () => {
    expect(at(0)).toBe(60);
    expect(at(2000)).toBe(100 - 40 / 8);
    expect(at(4000)).toBe(100);
  });

  test('probes above: by 5 % in half of K, by 40 % in K', () => {
    expect(at(6000)).toBe(105);
    expect(at(8000)).toBe(140);
  });
});

test('calm is two minutes without a rejection, and without a cut', () => {
  const state = rateState({ lastRejectedAt: 10_000, cutAt: 5000 });
  expect(isCalm(state, 130_000)).toBe(false);
  expect(isCalm(state, 130_001)).toBe(true);
  expect(isCalm({ ...state, cutAt: 20_000 }, 130_001)).toBe(false);
});
