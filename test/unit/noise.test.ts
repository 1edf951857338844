import { describe, expect, test } from 'vitest';
import { SendAccount } from '../../src/policy/rate/account.ts';
import { doubtNoise, hearNoise } from '../../src/policy/rate/noise.ts';
import { rateState } from '../support/rate-state.ts';

/** A rate of 80 where 100 held: far below it. */
const far = (cycleAccepted: number, cycleRejected: number) =>
  rateState({ phase: 'restoring', rate: 80, cycleAccepted, cycleRejected });

describe('a rejection far below a rate that held', () => {
  test('is noise where at most 1.5 % are, and tells how loud it is', () => {
    const state = far(197, 3);
    expect(hearNoise(state, 100)).toBe(true);
    expect(state.noise).toBe(0.015);
  });

  test('is no noise where there are more, or too few answers to say', () => {
    expect(hearNoise(far(196, 4), 100)).toBe(false);
    expect(hearNoise(far(48, 1), 100)).toBe(false);
    expect(far(196, 4).noise).toBe(0);
  });

  test('is felt where nothing has held for a minute', () => {
    expect(hearNoise(far(197, 3), 0)).toBe(false);
  });
});

describe('a rejection where the limit may be', () => {
  const near = (rejected: number) => ({ ...far(200 - rejected, rejected), rate: 85, noise: 0.01 });

  test('is noise as long as there is at most twice as much of it', () => {
    expect(hearNoise(near(4), 100)).toBe(true);
    expect(hearNoise(near(5), 100)).toBe(false);
  });

  test('is felt where no noise is known', () => {
    expect(hearNoise({ ...near(1), noise: 0 }, 100)).toBe(false);
  });
});

test('what was long ago counts ever less: of more than 500 answers a half is forgotten', () => {
  const state = far(996, 4);
  hearNoise(state, 100);
  expect([state.cycleAccepted, state.cycleRejected]).toEqual([498, 2]);
});

test('a cut halves what is believed of noise', () => {
  const state = rateState({ noise: 0.01 });
  doubtNoise(state);
  expect(state.noise).toBe(0.005);
});

test('a rate has held that passed for a whole minute, within the last two', () => {
  const account = new SendAccount(1000, 128);
  for (let second = 0; second < 70; second += 1) {
    const rate = second < 5 ? 50 : 10; // five seconds of a burst
    for (let i = 0; i < rate; i += 1) account.sent(second * 1000 + 500);
  }
  expect(account.heldRate(70_000, 60_000)).toBeCloseTo((5 * 50 + 55 * 10) / 60, 6);
  for (let second = 70; second < 190; second += 1) account.sent(second * 1000 + 500);
  expect(account.heldRate(190_000, 60_000)).toBeCloseTo((8 * 10 + 52) / 60, 6); // of the first 70 s the last 8 are remembered
  expect(new SendAccount(1000, 128).heldRate(0, 60_000)).toBe(0);
});
