import { describe, expect, test } from 'vitest';
import type { ActiveBlock } from '../../../src/core/rate/breaker/active-block.ts';
import { createBlock, probeInterval } from '../../../src/core/rate/breaker/active-block.ts';
import { saveRevertibleState } from '../../../src/core/rate/decrease.ts';
import type { Recovery } from '../../../src/core/rate/recovery.ts';
import { planRecovery } from '../../../src/core/rate/recovery.ts';
import type { RateState } from '../../../src/core/rate/rate-state.ts';
import { ANY_REQUEST } from '../../../src/core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { longSendHistory, rateState, sendEvenly } from '../../support/core/rate-builders.ts';

function blockadeOf(goodRate: number, since: Millis, stateBefore: Partial<RateState>, isOverrun = false): ActiveBlock {
  const [scope, before] = [[...ANY_REQUEST], saveRevertibleState(rateState(stateBefore))];
  return createBlock(
    {
      cause: 'rejections',
      scope,
      rateBefore: goodRate,
      stateBefore: before,
      wasUnlimited: false,
      isResumed: false,
      isOverrun,
      probeTimeout: 30_000,
      interval: probeInterval,
    },
    since,
  );
}

type Sends = readonly (readonly [perSecond: number, start: Millis, end: Millis])[];

/** A blackout: the last probe failed 10 ms before its end, and the next was sent 10 ms after it. */
function reopened(
  sends: Sends,
  [since, end]: readonly [Millis, Millis],
  state: Partial<RateState> = {},
  stateBefore: Partial<RateState> = {},
  isOverrun = false,
): Recovery {
  const long = longSendHistory();
  for (const [perSecond, from, until] of sends) sendEvenly(long, perSecond, from, until);
  const block = blockadeOf(100, since, stateBefore, isOverrun);
  block.lastRejectedProbeAt = end - 10;
  return planRecovery(rateState({ ceiling: 100, rate: 100, ...state }), long, block, end + 10);
}

describe('the rate after a used-up window', () => {
  test('is exactly what was accepted in all of it', () => {
    // 120 in 10 s, used up after 6 s.
    expect(reopened([[20, 0, 6000]], [6000, 10_000], { ceiling: 15 })).toEqual({
      rate: 0.95 * 12,
      ceiling: 12,
      finding: 'near',
      blackout: 4000,
    });
  });

  test('is measured whatever came before, if the rate has not fallen since', () => {
    const sends: Sends = [
      [9, 0, 10_000],
      [20, 10_000, 16_000],
    ];
    expect(reopened(sends, [16_000, 20_000], { ceiling: 15 }).ceiling).toBe(12);
  });

  test('excludes what came before the last effective cut', () => {
    const sends: Sends = [
      [100, 0, 10_000],
      [20, 10_000, 16_000],
    ];
    expect(reopened(sends, [16_000, 20_000], { ceiling: 15, risingSince: 10_000 }).ceiling).toBe(12);
  });

  test('excludes requests that were all rejected', () => {
    const long = sendEvenly(longSendHistory(), 20, 0, 6000);
    for (const sentAt of [6000, 6050, 7000, 9990]) {
      long.onSent(sentAt);
      long.onRejected(sentAt);
    }
    const block = blockadeOf(20, 6000, {});
    block.lastRejectedProbeAt = 9990;
    expect(planRecovery(rateState({ ceiling: 15 }), long, block, 10_010).ceiling).toBe(12);
  });

  test('is measured over at least twice the blackout, and over a second', () => {
    // Since the cut at 9000 it was 3 s: but 8 s are needed to cover the blackout.
    expect(reopened([[20, 0, 10_000]], [10_000, 14_000], { ceiling: 12, risingSince: 9000 }).ceiling).toBe(10);
    expect(reopened([[20, 0, 10_000]], [10_000, 10_200], { ceiling: 20, risingSince: 9900 }).ceiling).toBeCloseTo(
      20 / 1.2, // the second in which it begins counts in full
      9,
    );
  });
});

describe('a limit that has moved', () => {
  /** At a ceiling of 100: ten seconds accepted, then two of nothing. */
  const passing = (perSecond: number, state: Partial<RateState> = {}) =>
    reopened([[1.2 * perSecond, 0, 10_000]], [10_000, 12_000], state);

  test('by less than 0.7 counts as unmoved', () => {
    expect(passing(70)).toEqual({ rate: 0.95 * 70, ceiling: 70, finding: 'near', blackout: 2000 });
  });

  test('is searched between the accepted and the rejected rate', () => {
    expect(passing(60)).toEqual({ rate: 57, ceiling: 80, finding: 'moved', blackout: 2000 });
  });

  test('is halved by one blackout at most', () => {
    expect(passing(20)).toEqual({ rate: 47.5, ceiling: 75, finding: 'moved', blackout: 2000 });
    expect(reopened([], [0, 1000])).toMatchObject({ rate: 47.5, ceiling: 75, finding: 'moved' });
  });

  test('and was never met is set to the accepted rate, however low', () => {
    expect(passing(20, { lastFinding: 'first' })).toEqual({ rate: 19, ceiling: 20, finding: 'first', blackout: 2000 });
    expect(passing(300, { lastFinding: 'first', ceiling: 5 })).toMatchObject({
      rate: 285,
      ceiling: 300,
      finding: 'first',
    });
  });

  test('and accepted nothing gives no rate, so the guess is halved', () => {
    expect(reopened([], [0, 60_000], { lastFinding: 'first', ceiling: 5 })).toMatchObject({
      rate: 2.375,
      ceiling: 2.5,
    });
  });
});

describe('a penalty', () => {
  /** The state before the blackout, by default of a rate that had grown past half of K. */
  const GROWN: Partial<RateState> = { growthElapsed: 6000, growthPeriod: 10_000 };
  const shutFor = (blackout: Millis, state: Partial<RateState>, before = GROWN) =>
    reopened([[20, 0, 10_000]], [10_000, 10_000 + blackout], state, before);

  test('is inferred from a blackout as long as the one before, after which the rate is kept', () => {
    expect(shutFor(10_500, { lastBlackout: 10_000 })).toEqual({
      rate: 95,
      ceiling: 100,
      finding: 'penalty',
      blackout: 10_500,
    });
    expect(shutFor(8600, { lastBlackout: 10_000 }).finding).toBe('penalty');
  });

  test.each([
    ['differs by 15 %', 11_500, { lastBlackout: 10_000 }],
    ['has none before it', 10_000, {}],
    ['is 3 s long, as a window may be', 3000, { lastBlackout: 3000 }],
  ])('is not inferred if the blackout %s', (_, blackout, state) => {
    expect(shutFor(blackout, state).finding).toBe('moved');
  });

  test.each<[string, Partial<RateState>]>([
    ['soon after the last cut', { growthElapsed: 4000, growthPeriod: 10_000 }],
    ['after the fast climb from a first penalty', { ...GROWN, lastFinding: 'first-penalty' }],
  ])('%s shows that the ceiling is too high', (_, before) => {
    expect(shutFor(10_500, { lastBlackout: 10_000 }, before)).toMatchObject({ rate: 0.95 * 85, ceiling: 85 });
  });

  test('soon after the last cut says nothing about the ceiling if more is sent than the rate allows', () => {
    const before = { growthElapsed: 4000, growthPeriod: 10_000 };
    const recovery = reopened([[20, 0, 10_000]], [10_000, 20_500], { lastBlackout: 10_000 }, before, true);
    expect(recovery).toMatchObject({ rate: 95, ceiling: 100, finding: 'penalty' });
  });

  test('is likely at a limit that was never met before if hardly anything was accepted', () => {
    const passing = (perSecond: number) =>
      reopened([[perSecond, 0, 500]], [500, 30_500], { lastFinding: 'first' }, { lastFinding: 'first' });
    expect([passing(200).finding, passing(300).finding]).toEqual(['first-penalty', 'first']);
    expect(passing(200).ceiling).toBeCloseTo(100 / 60.5, 6);
  });

  test('is not inferred at a limit that was never met before', () => {
    expect(shutFor(10_000, { lastBlackout: 10_000, lastFinding: 'first' }).finding).toBe('first');
  });
});
