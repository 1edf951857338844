import { describe, expect, test } from 'vitest';
import { noteCost, noteLoss, planGrowth } from '../../src/core/rate/probe-planner.ts';
import { rateState } from '../support/rate-state.ts';

describe('K, where the limit is near', () => {
  test('is 130 sends for each rejection that finding it costs', () => {
    expect(planGrowth(rateState({ rate: 10 }))).toBe(13_000);
    expect(planGrowth(rateState({ rate: 10, usualLoss: 2.5 }))).toBe(32_500);
    expect(planGrowth(rateState({ rate: 10, usualLoss: 2.5, lost: 3 }))).toBe(39_000); // it costs 3 already
    expect(planGrowth(rateState({ rate: 10, usualLoss: 2.5, lost: 1 }))).toBe(32_500);
  });

  test('is ten times what a rejection costs in time, where that is longer', () => {
    expect(planGrowth(rateState({ rate: 10, cost: 1.3 }))).toBe(13_000);
    expect(planGrowth(rateState({ rate: 10, cost: 2 }))).toBe(20_000);
  });

  test('is within 3 s and 60 s', () => {
    expect(planGrowth(rateState({ rate: 130_000 / 3000 }))).toBe(3000);
    expect(planGrowth(rateState({ rate: 1000 }))).toBe(3000);
    expect(planGrowth(rateState({ rate: 0.1 }))).toBe(60_000);
    expect(planGrowth(rateState({ rate: 1000, cost: 30 }))).toBe(60_000);
  });
});

describe('K, where the ceiling is a guess', () => {
  test.each(['first', 'moved'] as const)('%s: is five times what a rejection costs in time', (found) => {
    expect(planGrowth(rateState({ found, rate: 10, cost: 2 }))).toBe(10_000);
    expect(planGrowth(rateState({ found, rate: 0.1, usualLoss: 50, lost: 50 }))).toBe(3000); // no matter what was lost
    expect(planGrowth(rateState({ found, cost: 100 }))).toBe(60_000);
  });
});

describe('K, where going beyond is a penalty', () => {
  test('is ten times what it costs in time, for up to ten minutes', () => {
    expect(planGrowth(rateState({ found: 'penalty', cost: 20 }))).toBe(200_000);
    expect(planGrowth(rateState({ found: 'penalty', cost: 61 }))).toBe(600_000);
    expect(planGrowth(rateState({ found: 'penalty', cost: 0.1 }))).toBe(3000);
  });
});

describe('what finding the limit costs', () => {
  test('is smoothed by half, and counted anew', () => {
    const state = rateState({ usualLoss: 1, lost: 4 });
    noteLoss(state);
    expect(state).toMatchObject({ usualLoss: 2.5, lost: 0 });
    state.lost = 1;
    noteLoss(state);
    expect(state.usualLoss).toBe(1.75);
  });

  test('is not told by a flood that found it first, or far away', () => {
    for (const found of ['first', 'moved', 'penalty'] as const) {
      const state = rateState({ found, usualLoss: 1, lost: 40 });
      noteLoss(state);
      expect(state).toMatchObject({ usualLoss: 1, lost: 0, found: 'near' });
    }
  });

  test('is not told by nothing', () => {
    const state = rateState({ usualLoss: 3 });
    noteLoss(state);
    expect(state.usualLoss).toBe(3);
  });
});

test('seconds lost to a rejection are smoothed by half', () => {
  const state = rateState();
  noteCost(state, 4);
  expect(state.cost).toBe(2);
  noteCost(state, 4);
  expect(state.cost).toBe(3);
  noteCost(state, 0);
  expect(state.cost).toBe(1.5);
});
