import { describe, expect, test } from 'vitest';
import { advanceGrowth, cubicGrowthRate, isCeilingStale } from '../../../src/core/rate/growth.ts';
import { recordRejectionCost, recordProbeLoss, planGrowthPeriod } from '../../../src/core/rate/probe-planner.ts';
import { RATE_RULES } from '../../../src/core/rate/rules.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { rateState } from '../../support/core/rate-builders.ts';

describe('K, near the limit', () => {
  test('is 130 sends for each rejection that is needed to find the limit', () => {
    expect(planGrowthPeriod(rateState({ rate: 10 }))).toBe(13_000);
    expect(planGrowthPeriod(rateState({ rate: 10, usualProbeLoss: 2.5 }))).toBe(32_500);
    expect(planGrowthPeriod(rateState({ rate: 10, usualProbeLoss: 2.5, probeLoss: 3 }))).toBe(39_000); // its current cost is already 3
    expect(planGrowthPeriod(rateState({ rate: 10, usualProbeLoss: 2.5, probeLoss: 1 }))).toBe(32_500);
  });

  test('is ten times the cost of a rejection in time, if that is longer', () => {
    expect(planGrowthPeriod(rateState({ rate: 10, secondsPerRejection: 1.3 }))).toBe(13_000);
    expect(planGrowthPeriod(rateState({ rate: 10, secondsPerRejection: 2 }))).toBe(20_000);
  });

  test('is within 3 s and 60 s', () => {
    expect(planGrowthPeriod(rateState({ rate: 130_000 / 3000 }))).toBe(3000);
    expect(planGrowthPeriod(rateState({ rate: 1000 }))).toBe(3000);
    expect(planGrowthPeriod(rateState({ rate: 0.1 }))).toBe(60_000);
    expect(planGrowthPeriod(rateState({ rate: 1000, secondsPerRejection: 30 }))).toBe(60_000);
  });
});

describe('K, with a guessed ceiling', () => {
  test.each(['first', 'moved'] as const)('%s: is five times the cost of a rejection in time', (found) => {
    expect(planGrowthPeriod(rateState({ lastFinding: found, rate: 10, secondsPerRejection: 2 }))).toBe(10_000);
    expect(planGrowthPeriod(rateState({ lastFinding: found, rate: 0.1, usualProbeLoss: 50, probeLoss: 50 }))).toBe(
      3000,
    ); // whatever was lost
    expect(planGrowthPeriod(rateState({ lastFinding: found, secondsPerRejection: 100 }))).toBe(60_000);
  });
});

describe('K, after a penalty', () => {
  test('if it is the first, makes the ceiling stale after as long as the blackout was', () => {
    const state = rateState({ lastFinding: 'first-penalty', lastBlackout: 30_000, secondsPerRejection: 15 });
    const growthPeriod = planGrowthPeriod(state);
    const isStale = (growthElapsed: Millis) => {
      const grown = { ...state, ceiling: 10, growthPeriod, growthElapsed };
      return isCeilingStale({ ...grown, rate: cubicGrowthRate(grown) });
    };
    expect([isStale(29_500), isStale(30_500)]).toEqual([false, true]);
  });

  test('is ten times the cost of the penalty in time, up to ten minutes', () => {
    expect(planGrowthPeriod(rateState({ lastFinding: 'penalty', secondsPerRejection: 20 }))).toBe(200_000);
    expect(planGrowthPeriod(rateState({ lastFinding: 'penalty', secondsPerRejection: 61 }))).toBe(600_000);
    expect(planGrowthPeriod(rateState({ lastFinding: 'penalty', secondsPerRejection: 0.1 }))).toBe(3000);
  });
});

test('a rate that exceeds a stale ceiling after a first penalty grows as fast as its feedback allows', () => {
  const growthPeriods = (['first-penalty', 'near'] as const).map((lastFinding) => {
    const state = rateState({ lastFinding, ceiling: 10, rate: 13, growthPeriod: 17_000, growthElapsed: 31_000 });
    Object.assign(state, { lastBlackout: 30_000, secondsPerRejection: 15 });
    advanceGrowth(state, { initialRate: undefined, maxRate: 1000, minRate: 0.1, cooldown: 1000 }, RATE_RULES, 100);
    return state.growthPeriod;
  });
  expect(growthPeriods).toEqual([3000, 17_000]);
});

describe('the cost of finding the limit', () => {
  test('is smoothed by half, and counted again from zero', () => {
    const state = rateState({ usualProbeLoss: 1, probeLoss: 4 });
    recordProbeLoss(state);
    expect(state).toMatchObject({ usualProbeLoss: 2.5, probeLoss: 0 });
    state.probeLoss = 1;
    recordProbeLoss(state);
    expect(state.usualProbeLoss).toBe(1.75);
  });

  test('ignores the rejections of a first or distant limit', () => {
    for (const found of ['first', 'moved', 'penalty'] as const) {
      const state = rateState({ lastFinding: found, usualProbeLoss: 1, probeLoss: 40 });
      recordProbeLoss(state);
      expect(state).toMatchObject({ usualProbeLoss: 1, probeLoss: 0, lastFinding: 'near' });
    }
  });

  test('ignores a cycle without rejections', () => {
    const state = rateState({ usualProbeLoss: 3 });
    recordProbeLoss(state);
    expect(state.usualProbeLoss).toBe(3);
  });
});

test('the seconds lost to a rejection are smoothed by half', () => {
  const state = rateState();
  recordRejectionCost(state, 4);
  expect(state.secondsPerRejection).toBe(2);
  recordRejectionCost(state, 4);
  expect(state.secondsPerRejection).toBe(3);
  recordRejectionCost(state, 0);
  expect(state.secondsPerRejection).toBe(1.5);
});
