import { describe, expect, test } from 'vitest';
import { cutAgain, cutFirst, isSameEpoch, settleCut } from '../../src/core/rate/decrease.ts';
import type { RateSettings } from '../../src/core/rate/rate-state.ts';
import { rateState, recentAccount, sendEvenly } from '../support/rate-state.ts';

describe('one signal is one cut', () => {
  const state = rateState({ phase: 'restoring', cutAt: 5000 });

  test('what left before the cut, or within 200 ms of it, did not feel it', () => {
    expect([4000, 5000, 5200].map((sentAt) => isSameEpoch(state, sentAt))).toEqual([true, true, true]);
    expect(isSameEpoch(state, 5200.1)).toBe(false);
  });

  test('nor what left within a round trip of it', () => {
    expect(isSameEpoch({ ...state, smoothedRtt: 700 }, 5700)).toBe(true);
    expect(isSameEpoch({ ...state, smoothedRtt: 700 }, 5701)).toBe(false);
  });

  test('until something is accepted that felt it, nobody knows whether it was enough', () => {
    expect(isSameEpoch({ ...state, phase: 'backoff' }, 60_000)).toBe(true);
  });

  test('while open there was none', () => {
    expect(isSameEpoch({ ...state, phase: 'open' }, 4000)).toBe(false);
  });
});

describe('the first cut', () => {
  const open = rateState({ rate: Number.POSITIVE_INFINITY });

  test('is to 0.9 of what was accepted over the last second', () => {
    const recent = sendEvenly(recentAccount(), 100, 0, 2000);
    recent.rejected(1990);
    expect(cutFirst(open, recent, 2000)).toEqual({ rate: 0.9 * 99, ceiling: 99, cause: 'first' });
  });

  test('is to what was accepted since requests began, and of no less than 250 ms', () => {
    expect(cutFirst(open, sendEvenly(recentAccount(), 100, 1500, 2000), 2000).ceiling).toBe(100);
    expect(cutFirst(open, sendEvenly(recentAccount(), 1000, 1950, 2000), 2000).ceiling).toBe(200); // 50 in 250 ms
  });

  test('goes from 5 a second where next to nothing was accepted', () => {
    expect(cutFirst(open, recentAccount(), 2000)).toEqual({ rate: 4.5, ceiling: 5, cause: 'first' });
  });

  test('believes no more than the maximum that was kept to', () => {
    const recent = sendEvenly(recentAccount(), 100, 0, 2000);
    expect(cutFirst(rateState({ rate: 60 }), recent, 2000).ceiling).toBe(60);
  });
});

describe('a later cut', () => {
  test('is by 5 % once half of K has passed', () => {
    for (const grown of [1500, 3000, 9000]) {
      const cut = cutAgain(rateState({ rate: 80, growFor: 3000, grown, cycleAccepted: 30, cycleRejected: 10 }));
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
  ])(
    'before that is to the share that was accepted since the last, by 5 to 30 %: $accepted, and not $rejected',
    (told) => {
      const { accepted, rejected, rate } = told;
      const cut = cutAgain(rateState({ rate: 80, grown: 1499, cycleAccepted: accepted, cycleRejected: rejected }));
      expect(cut.rate).toBeCloseTo(rate, 9);
      expect(cut).toMatchObject({ ceiling: 80, cause: 'heavy' });
    },
  );

  test('is by 5 % there too, where fewer than three were rejected: they make no share', () => {
    const cut = cutAgain(rateState({ rate: 99, grown: 0, cycleAccepted: 2, cycleRejected: 2 }));
    expect(cut).toEqual({ rate: 94.05, ceiling: 99, cause: 'small' });
  });

  test('is small where fewer than three were rejected: they make no share', () => {
    const few = { rate: 80, ceiling: 100, growFor: 3000, grown: 0, cycleAccepted: 2, cycleRejected: 2 };
    expect(cutAgain(rateState(few))).toEqual({ rate: 76, ceiling: 97, cause: 'small' });
    expect(cutAgain(rateState({ ...few, cycleRejected: 3 }))).toEqual({ rate: 56, ceiling: 80, cause: 'heavy' });
  });

  test('below the ceiling is by chance, where fewer than three were rejected: it gives way by 3 %', () => {
    const lone = { rate: 80, ceiling: 100, growFor: 3000, cycleAccepted: 50, cycleRejected: 2 };
    expect(cutAgain(rateState({ ...lone, grown: 2999 })).ceiling).toBe(97);
    expect(cutAgain(rateState({ ...lone, grown: 3000 })).ceiling).toBe(80);
    expect(cutAgain(rateState({ ...lone, rate: 98, grown: 2999 })).ceiling).toBe(98);
    expect(cutAgain(rateState({ ...lone, grown: 2999, cycleRejected: 3 })).ceiling).toBe(80);
  });
});

describe('what every cut does', () => {
  const settings: RateSettings = { initialRate: undefined, maxRate: 200, minRate: 2, cooldown: 1500 };

  test('it holds, and growth begins anew', () => {
    const state = rateState({
      phase: 'restoring',
      grown: 2000,
      cycleAccepted: 7,
      cycleRejected: 3,
      lost: 2,
      usualLoss: 4,
    });
    settleCut(state, settings, { rate: 50, ceiling: 60 }, 7000);
    expect(state).toMatchObject({
      phase: 'backoff',
      rate: 50,
      rateAtCut: 50,
      ceiling: 60,
      cutAt: 7000,
      holdUntil: 8500,
      grown: 0,
      cycleAccepted: 0,
      cycleRejected: 0,
      lost: 2,
      usualLoss: 4,
    });
  });

  test('it keeps within the bounds, and no ceiling is so low that nothing could grow to it', () => {
    const state = rateState();
    settleCut(state, settings, { rate: 0, ceiling: 0 }, 7000);
    expect(state).toMatchObject({ rate: 2, rateAtCut: 2, ceiling: 2 });
    settleCut(state, settings, { rate: 300, ceiling: 400 }, 7000);
    expect(state).toMatchObject({ rate: 200, rateAtCut: 200, ceiling: 200 });
  });
});
