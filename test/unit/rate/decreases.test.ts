import { describe, expect, test } from 'vitest';
import {
  computeLaterDecrease,
  computeFirstDecrease,
  isSameEpoch,
  applyDecrease,
  recordLimitRejection,
} from '../../../src/core/rate/decrease.ts';
import { RATE_RULES } from '../../../src/core/rate/rules.ts';
import type { RateSettings, RateState } from '../../../src/core/rate/rate-state.ts';
import { rateState, recentSendHistory, sendEvenly } from '../../support/core/rate-builders.ts';

describe('the epoch of a cut', () => {
  const state = rateState({ phase: 'restoring', decreasedAt: 5000 });

  test('includes requests sent before the cut, or within 200 ms of it', () => {
    expect([4000, 5000, 5200].map((sentAt) => isSameEpoch(state, sentAt))).toEqual([true, true, true]);
    expect(isSameEpoch(state, 5200.1)).toBe(false);
  });

  test('includes requests sent within a round trip of the cut', () => {
    expect(isSameEpoch({ ...state, smoothedRtt: 700 }, 5700)).toBe(true);
    expect(isSameEpoch({ ...state, smoothedRtt: 700 }, 5701)).toBe(false);
  });

  test('lasts until a request sent after the cut is accepted', () => {
    expect(isSameEpoch({ ...state, phase: 'backoff' }, 60_000)).toBe(true);
  });

  test('does not begin while the limit is open', () => {
    expect(isSameEpoch({ ...state, phase: 'open' }, 4000)).toBe(false);
  });
});

describe('the first cut', () => {
  const open = rateState({ rate: Number.POSITIVE_INFINITY });

  test('is to 0.9 of what was accepted over the last second', () => {
    const recent = sendEvenly(recentSendHistory(), 100, 0, 2000);
    recent.onRejected(1990);
    expect(computeFirstDecrease(open, recent, 2000)).toEqual({ rate: 0.9 * 99, ceiling: 99, cause: 'first' });
  });

  test('is to what was accepted since requests began, over at least 250 ms', () => {
    expect(computeFirstDecrease(open, sendEvenly(recentSendHistory(), 100, 1500, 2000), 2000).ceiling).toBe(100);
    expect(computeFirstDecrease(open, sendEvenly(recentSendHistory(), 1000, 1950, 2000), 2000).ceiling).toBe(200); // 50 in 250 ms
  });

  test('is to 5 a second if almost nothing was accepted', () => {
    expect(computeFirstDecrease(open, recentSendHistory(), 2000)).toEqual({ rate: 4.5, ceiling: 5, cause: 'first' });
  });

  test('is to no more than the maximum in force', () => {
    const recent = sendEvenly(recentSendHistory(), 100, 0, 2000);
    expect(computeFirstDecrease(rateState({ rate: 60 }), recent, 2000).ceiling).toBe(60);
  });
});

describe('a cut by the same Retry-After as before', () => {
  /** A rejection out of a calm state, in which one cost 20 s. */
  const rejected = (retryAfterMs: number | undefined, given: Partial<RateState> = {}) => {
    const state = rateState({ phase: 'restoring', rate: 100, ceiling: 120, lastRetryAfterMs: 60_000, ...given });
    state.secondsPerRejection = given.secondsPerRejection ?? 20;
    recordLimitRejection(state, RATE_RULES, retryAfterMs, 5000);
    return { ...computeLaterDecrease(state), finding: state.lastFinding };
  };
  const late = { growthElapsed: 6000, growthPeriod: 10_000 };

  test('is that of a penalty: small if the rate has grown past half of K, deeper before', () => {
    expect(rejected(60_000, late)).toEqual({ rate: 95, ceiling: 100, cause: 'small', finding: 'penalty' });
    const early = { growthElapsed: 4000, growthPeriod: 10_000 };
    expect(rejected(60_000, early)).toEqual({ rate: 0.95 * 85, ceiling: 85, cause: 'small', finding: 'penalty' });
  });

  test.each([
    ['another one', 59_000, {}],
    ['none', undefined, {}],
    ['one as short as the rest of a window', 3000, { lastRetryAfterMs: 3000 }],
    ['one that holds few of many clients', 60_000, { secondsPerRejection: 8 }],
  ])('is none with %s', (_, retryAfterMs, given) => {
    expect(rejected(retryAfterMs, { ...late, ...given }).finding).toBe('near');
  });

  test('is compared with the last rejection out of a calm state', () => {
    const state = rateState({ phase: 'open' });
    recordLimitRejection(state, RATE_RULES, 60_000, 5000);
    expect(state.lastRetryAfterMs).toBe(60_000);
    state.phase = 'backoff';
    recordLimitRejection(state, RATE_RULES, 59_000, 5100);
    expect(state.lastRetryAfterMs).toBe(60_000);
  });
});

describe('a later cut', () => {
  test('is by 5 % once half of K has passed', () => {
    for (const grown of [1500, 3000, 9000]) {
      const cut = computeLaterDecrease(
        rateState({
          rate: 80,
          growthPeriod: 3000,
          growthElapsed: grown,
          acceptedSinceDecrease: 30,
          rejectedSinceDecrease: 10,
        }),
      );
      expect(cut).toEqual({ rate: 76, ceiling: 80, cause: 'small' });
    }
  });

  test.each([
    { accepted: 0, rejected: 3, rate: 56 },
    { accepted: 69, rejected: 31, rate: 56 },
    { accepted: 75, rejected: 25, rate: 60 },
    { accepted: 9, rejected: 3, rate: 60 },
    { accepted: 94, rejected: 6, rate: 75.2 },
    { accepted: 96, rejected: 4, rate: 76 },
  ])('before that is to the share accepted since the last, by 5 to 30 %: $accepted, and not $rejected', (given) => {
    const { accepted, rejected, rate } = given;
    const cut = computeLaterDecrease(
      rateState({ rate: 80, growthElapsed: 1499, acceptedSinceDecrease: accepted, rejectedSinceDecrease: rejected }),
    );
    expect(cut.rate).toBeCloseTo(rate, 9);
    expect(cut).toMatchObject({ ceiling: 80, cause: 'heavy' });
  });

  test('is by 5 % before that too with fewer than three rejections, which are too few for a share', () => {
    const cut = computeLaterDecrease(
      rateState({ rate: 99, growthElapsed: 0, acceptedSinceDecrease: 2, rejectedSinceDecrease: 2 }),
    );
    expect(cut).toEqual({ rate: 94.05, ceiling: 99, cause: 'small' });
  });

  test('is small with fewer than three rejections, which are too few for a share', () => {
    const few = {
      rate: 80,
      ceiling: 100,
      growthPeriod: 3000,
      growthElapsed: 0,
      acceptedSinceDecrease: 2,
      rejectedSinceDecrease: 2,
    };
    expect(computeLaterDecrease(rateState(few))).toEqual({ rate: 76, ceiling: 97, cause: 'small' });
    expect(computeLaterDecrease(rateState({ ...few, rejectedSinceDecrease: 3 }))).toEqual({
      rate: 56,
      ceiling: 80,
      cause: 'heavy',
    });
  });

  test('below the ceiling with fewer than three rejections lowers the ceiling only by 3 %', () => {
    const lone = { rate: 80, ceiling: 100, growthPeriod: 3000, acceptedSinceDecrease: 50, rejectedSinceDecrease: 2 };
    expect(computeLaterDecrease(rateState({ ...lone, growthElapsed: 2999 })).ceiling).toBe(97);
    expect(computeLaterDecrease(rateState({ ...lone, growthElapsed: 3000 })).ceiling).toBe(80);
    expect(computeLaterDecrease(rateState({ ...lone, rate: 98, growthElapsed: 2999 })).ceiling).toBe(98);
    expect(computeLaterDecrease(rateState({ ...lone, growthElapsed: 2999, rejectedSinceDecrease: 3 })).ceiling).toBe(
      80,
    );
  });
});

describe('every cut', () => {
  const settings: RateSettings = { initialRate: undefined, maxRate: 200, minRate: 2, cooldown: 1500 };

  test('keeps the rate for the cooldown, and restarts growth', () => {
    const state = rateState({
      phase: 'restoring',
      growthElapsed: 2000,
      acceptedSinceDecrease: 7,
      rejectedSinceDecrease: 3,
      probeLoss: 2,
      usualProbeLoss: 4,
    });
    applyDecrease(state, settings, { rate: 50, ceiling: 60 }, 7000);
    expect(state).toMatchObject({
      phase: 'backoff',
      rate: 50,
      rateAfterDecrease: 50,
      ceiling: 60,
      decreasedAt: 7000,
      growthPausedUntil: 8500,
      growthElapsed: 0,
      acceptedSinceDecrease: 0,
      rejectedSinceDecrease: 0,
      probeLoss: 2,
      usualProbeLoss: 4,
    });
  });

  test('keeps within the bounds, and sets a ceiling that leaves room for growth', () => {
    const state = rateState();
    applyDecrease(state, settings, { rate: 0, ceiling: 0 }, 7000);
    expect(state).toMatchObject({ rate: 2, rateAfterDecrease: 2, ceiling: 2 });
    applyDecrease(state, settings, { rate: 300, ceiling: 400 }, 7000);
    expect(state).toMatchObject({ rate: 200, rateAfterDecrease: 200, ceiling: 200 });
  });
});
