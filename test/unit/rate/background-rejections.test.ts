import { describe, expect, test } from 'vitest';
import { discountBackgroundShare, isBackgroundRejection } from '../../../src/core/rate/background-rejections.ts';
import type { RateState } from '../../../src/core/rate/rate-state.ts';
import { rateState } from '../../support/core/rate-builders.ts';

/** A rate that was cut from `from` to `to` by a tenth each time, with `share` of the responses rejected. */
function stateAfterCuts(from: number, to: number, share: (rate: number) => number, answers = 100): RateState {
  const state = rateState({ phase: 'restoring', rate: from, ceiling: from });
  for (;;) {
    const rejected = Math.round(answers * share(state.rate));
    Object.assign(state, { acceptedSinceDecrease: answers - rejected, rejectedSinceDecrease: rejected });
    Object.assign(state, { recentAccepted: answers - rejected, recentRejected: rejected });
    if (state.rate <= to) return state;
    discountBackgroundShare(state);
    state.rate *= 0.9;
    state.ceiling = state.rate;
  }
}

describe('a rate that was cut in small steps', () => {
  test('to a half, with equally frequent rejections, was cut by background rejections, and recovers', () => {
    const state = stateAfterCuts(100, 40, () => 0.05);
    expect(isBackgroundRejection(state)).toBe(true);
    expect(state.backgroundShare).toBeCloseTo(0.05, 6);
    expect(state).toMatchObject({ growthElapsed: 0, growthPeriod: 3000, rateAfterDecrease: state.rate, ceiling: 100 });
  });

  test('to more than a half is not treated as cut by background rejections', () => {
    expect(isBackgroundRejection(stateAfterCuts(100, 60, () => 0.05))).toBe(false);
  });

  test('with fewer rejections at lower rates has reached a limit', () => {
    const state = stateAfterCuts(100, 40, (rate) => Math.max(0.02, 1 - 50 / rate));
    expect(isBackgroundRejection(state)).toBe(false);
    expect(state.backgroundShare).toBe(0);
  });

  test('with a cycle of three rejections in ten has reached a limit', () => {
    const state = stateAfterCuts(100, 40, () => 0.05);
    const met = state.cycles.map((cycle, i) => (i === 4 ? { ...cycle, accepted: 6, rejected: 3 } : cycle));
    expect(isBackgroundRejection({ ...state, cycles: met })).toBe(false);
    const chance = met.map((cycle, i) => (i === 4 ? { ...cycle, accepted: 3, rejected: 2 } : cycle));
    expect(isBackgroundRejection({ ...state, cycles: chance })).toBe(true);
  });

  test('shows no background rejections at the share of its own probes, nor above 15 %', () => {
    expect(isBackgroundRejection(stateAfterCuts(100, 40, () => 0.009, 1000))).toBe(false);
    expect(isBackgroundRejection(stateAfterCuts(100, 40, () => 0.011, 1000))).toBe(true);
    expect(isBackgroundRejection(stateAfterCuts(100, 40, () => 0.2))).toBe(false);
  });

  test('with a jump in between is judged only by the steps since the jump', () => {
    const state = stateAfterCuts(100, 70, () => 0.05);
    const { cycles } = state;
    const below = stateAfterCuts(45, 40, () => 0.05);
    expect(isBackgroundRejection({ ...below, cycles: [...cycles, ...below.cycles] })).toBe(false);
  });

  test('with too few responses is assumed to have reached a limit', () => {
    const state = stateAfterCuts(100, 40, () => 0.05);
    Object.assign(state, {
      recentAccepted: 40,
      recentRejected: 2,
      cycles: state.cycles.filter(({ rate }) => rate > 60),
    });
    expect(isBackgroundRejection(state)).toBe(false);
  });
});

describe('a known background share', () => {
  const noisy = (latelyRejected: number) =>
    rateState({
      phase: 'restoring',
      rate: 95,
      backgroundShare: 0.05,
      recentAccepted: 200 - latelyRejected,
      recentRejected: latelyRejected,
    });

  test('explains half as many rejections more, and two at random', () => {
    expect(isBackgroundRejection(noisy(17))).toBe(true);
    expect(isBackgroundRejection(noisy(18))).toBe(false);
  });

  test('is reduced by a quarter at each cut', () => {
    const state = noisy(0);
    discountBackgroundShare(state);
    expect(state.backgroundShare).toBeCloseTo(0.75 * 0.05, 6);
  });

  test('is compared with recent responses, of which half are dropped beyond 500', () => {
    const state = rateState({ backgroundShare: 0.05, recentAccepted: 996, recentRejected: 4 });
    isBackgroundRejection(state);
    expect([state.recentAccepted, state.recentRejected]).toEqual([498, 2]);
  });
});

test('traffic without a rate adds no evidence', () => {
  const state = rateState({ phase: 'open', rate: Number.POSITIVE_INFINITY });
  discountBackgroundShare(state);
  expect(state.cycles).toEqual([]);
});
