import { describe, expect, test } from 'vitest';
import type { Blockade } from '../../src/core/rate/breaker/active-block.ts';
import { blockade, probeInterval } from '../../src/core/rate/breaker/active-block.ts';
import { uncutOf } from '../../src/core/rate/decrease.ts';
import type { Reopening } from '../../src/core/rate/recovery.ts';
import { reopen } from '../../src/core/rate/recovery.ts';
import type { RateState } from '../../src/core/rate/rate-state.ts';
import { ANYWHERE } from '../../src/core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import { longAccount, rateState, sendEvenly } from '../support/rate-state.ts';

function blockadeOf(goodRate: number, since: Millis): Blockade {
  const [scope, before] = [[...ANYWHERE], uncutOf(rateState())];
  return blockade(
    {
      cause: 'rejections',
      scope,
      goodRate,
      before,
      wasOpen: false,
      isResumed: false,
      patience: 30_000,
      interval: probeInterval,
    },
    since,
  );
}

type Sends = readonly (readonly [perSecond: number, start: Millis, end: Millis])[];

/** A blackout: the last probe failed 10 ms before its end, the next left 10 ms after. */
function reopened(sends: Sends, [since, end]: readonly [Millis, Millis], state: Partial<RateState> = {}): Reopening {
  const long = longAccount();
  for (const [perSecond, from, until] of sends) sendEvenly(long, perSecond, from, until);
  const block = blockadeOf(100, since);
  block.shutAt = end - 10;
  return reopen(rateState({ ceiling: 100, rate: 100, ...state }), long, block, end + 10);
}

describe('a window that was used up', () => {
  test('is told exactly: what was accepted in all of it', () => {
    // 120 in 10 s, used up after 6 s.
    expect(reopened([[20, 0, 6000]], [6000, 10_000], { ceiling: 15 })).toEqual({
      rate: 0.95 * 12,
      ceiling: 12,
      found: 'near',
      blackout: 4000,
    });
  });

  test('is told whatever came before it, where the rate did not fall since', () => {
    const sends: Sends = [
      [9, 0, 10_000],
      [20, 10_000, 16_000],
    ];
    expect(reopened(sends, [16_000, 20_000], { ceiling: 15 }).ceiling).toBe(12);
  });

  test('what came before the last cut that helped does not count', () => {
    const sends: Sends = [
      [100, 0, 10_000],
      [20, 10_000, 16_000],
    ];
    expect(reopened(sends, [16_000, 20_000], { ceiling: 15, risingSince: 10_000 }).ceiling).toBe(12);
  });

  test('of its rejections nothing passed', () => {
    const long = sendEvenly(longAccount(), 20, 0, 6000);
    for (const sentAt of [6000, 6050, 7000, 9990]) {
      long.sent(sentAt);
      long.rejected(sentAt);
    }
    const block = blockadeOf(20, 6000);
    block.shutAt = 9990;
    expect(reopen(rateState({ ceiling: 15 }), long, block, 10_010).ceiling).toBe(12);
  });

  test('counts over twice the blackout at least, and a second', () => {
    // Since the cut at 9000 it was 3 s: but 8 s outweigh the blackout.
    expect(reopened([[20, 0, 10_000]], [10_000, 14_000], { ceiling: 12, risingSince: 9000 }).ceiling).toBe(10);
    expect(reopened([[20, 0, 10_000]], [10_000, 10_200], { ceiling: 20, risingSince: 9900 }).ceiling).toBeCloseTo(
      20 / 1.2, // the second in which it begins counts whole
      9,
    );
  });
});

describe('a limit that has moved', () => {
  /** Of a ceiling of 100: ten seconds of it accepted, then two of nothing. */
  const passing = (perSecond: number, state: Partial<RateState> = {}) =>
    reopened([[1.2 * perSecond, 0, 10_000]], [10_000, 12_000], state);

  test('by less than 0.7 was where it was expected, more or less', () => {
    expect(passing(70)).toEqual({ rate: 0.95 * 70, ceiling: 70, found: 'near', blackout: 2000 });
  });

  test('is sought between what passed and what did not', () => {
    expect(passing(60)).toEqual({ rate: 57, ceiling: 80, found: 'moved', blackout: 2000 });
  });

  test('is halved by one blackout at most', () => {
    expect(passing(20)).toEqual({ rate: 47.5, ceiling: 75, found: 'moved', blackout: 2000 });
    expect(reopened([], [0, 1000])).toMatchObject({ rate: 47.5, ceiling: 75, found: 'moved' });
  });

  test('was unknown, where this is the first of it: then what passed is the limit, however little', () => {
    expect(passing(20, { found: 'first' })).toEqual({ rate: 19, ceiling: 20, found: 'first', blackout: 2000 });
    expect(passing(300, { found: 'first', ceiling: 5 })).toMatchObject({ rate: 285, ceiling: 300, found: 'first' });
  });

  test('but nothing at all is no rate: then the guess is halved', () => {
    expect(reopened([], [0, 60_000], { found: 'first', ceiling: 5 })).toMatchObject({ rate: 2.375, ceiling: 2.5 });
  });
});

describe('a penalty', () => {
  const shutFor = (blackout: Millis, state: Partial<RateState>) =>
    reopened([[20, 0, 10_000]], [10_000, 10_000 + blackout], state);

  test('takes as long as the one before: then the rate was not far off', () => {
    expect(shutFor(10_500, { lastBlackout: 10_000 })).toEqual({
      rate: 95,
      ceiling: 100,
      found: 'penalty',
      blackout: 10_500,
    });
    expect(shutFor(8600, { lastBlackout: 10_000 }).found).toBe('penalty');
  });

  test.each([
    ['by 15 %, it is another matter', 11_500, { lastBlackout: 10_000 }],
    ['where there was none before', 10_000, {}],
    ['of 3 s it may be a window', 3000, { lastBlackout: 3000 }],
  ])('%s', (_, blackout, state) => {
    expect(shutFor(blackout, state).found).toBe('moved');
  });

  test('is not told of what was never felt before', () => {
    expect(shutFor(10_000, { lastBlackout: 10_000, found: 'first' }).found).toBe('first');
  });
});
