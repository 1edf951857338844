import { describe, expect, test } from 'vitest';
import { doubtNoise, hearNoise } from '../../src/core/rate/background-rejections.ts';
import type { RateState } from '../../src/core/rate/rate-state.ts';
import { rateState } from '../support/rate-state.ts';

/** A rate that was cut from `from` to `to` by a tenth each time, when `share` of the answers had been rejected. */
function sunk(from: number, to: number, share: (rate: number) => number, answers = 100): RateState {
  const state = rateState({ phase: 'restoring', rate: from, ceiling: from });
  for (;;) {
    const rejected = Math.round(answers * share(state.rate));
    Object.assign(state, { cycleAccepted: answers - rejected, cycleRejected: rejected });
    Object.assign(state, { latelyAccepted: answers - rejected, latelyRejected: rejected });
    if (state.rate <= to) return state;
    doubtNoise(state);
    state.rate *= 0.9;
    state.ceiling = state.rate;
  }
}

describe('a rate that has sunk little by little', () => {
  test('to a half, and is rejected as often as it was: that is noise, and it comes back', () => {
    const state = sunk(100, 40, () => 0.05);
    expect(hearNoise(state)).toBe(true);
    expect(state.noise).toBeCloseTo(0.05, 6);
    expect(state).toMatchObject({ grown: 0, growFor: 3000, rateAtCut: state.rate, ceiling: 100 });
  });

  test('to less than a half is not far enough to say', () => {
    expect(hearNoise(sunk(100, 60, () => 0.05))).toBe(false);
  });

  test('and is rejected less often there has met a limit', () => {
    const state = sunk(100, 40, (rate) => Math.max(0.02, 1 - 50 / rate));
    expect(hearNoise(state)).toBe(false);
    expect(state.noise).toBe(0);
  });

  test('through a cycle of which three in ten were rejected has met a limit', () => {
    const state = sunk(100, 40, () => 0.05);
    const met = state.cycles.map((cycle, i) => (i === 4 ? { ...cycle, accepted: 6, rejected: 3 } : cycle));
    expect(hearNoise({ ...state, cycles: met })).toBe(false);
    const chance = met.map((cycle, i) => (i === 4 ? { ...cycle, accepted: 3, rejected: 2 } : cycle));
    expect(hearNoise({ ...state, cycles: chance })).toBe(true);
  });

  test('as its probes usually are is no noise, nor is what is louder than 15 %', () => {
    expect(hearNoise(sunk(100, 40, () => 0.009, 1000))).toBe(false);
    expect(hearNoise(sunk(100, 40, () => 0.011, 1000))).toBe(true);
    expect(hearNoise(sunk(100, 40, () => 0.2))).toBe(false);
  });

  test('but by a leap in between says nothing of what was before', () => {
    const state = sunk(100, 70, () => 0.05);
    const { cycles } = state;
    const below = sunk(45, 40, () => 0.05);
    expect(hearNoise({ ...below, cycles: [...cycles, ...below.cycles] })).toBe(false);
  });

  test('with too few answers to say is believed to have met a limit', () => {
    const state = sunk(100, 40, () => 0.05);
    Object.assign(state, {
      latelyAccepted: 40,
      latelyRejected: 2,
      cycles: state.cycles.filter(({ rate }) => rate > 60),
    });
    expect(hearNoise(state)).toBe(false);
  });
});

describe('where noise is known', () => {
  const noisy = (latelyRejected: number) =>
    rateState({ phase: 'restoring', rate: 95, noise: 0.05, latelyAccepted: 200 - latelyRejected, latelyRejected });

  test('a rejection is noise while there are at most half as many again, and two by chance', () => {
    expect(hearNoise(noisy(17))).toBe(true);
    expect(hearNoise(noisy(18))).toBe(false);
  });

  test('a part of it is doubted at each cut', () => {
    const state = noisy(0);
    doubtNoise(state);
    expect(state.noise).toBeCloseTo(0.75 * 0.05, 6);
  });

  test('what was long ago counts ever less: of more than 500 answers a half is forgotten', () => {
    const state = rateState({ noise: 0.05, latelyAccepted: 996, latelyRejected: 4 });
    hearNoise(state);
    expect([state.latelyAccepted, state.latelyRejected]).toEqual([498, 2]);
  });
});

test('what was not paced tells nothing of a rate', () => {
  const state = rateState({ phase: 'open', rate: Number.POSITIVE_INFINITY });
  doubtNoise(state);
  expect(state.cycles).toEqual([]);
});
