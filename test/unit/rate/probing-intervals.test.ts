import { describe, expect, test } from 'vitest';
import type { ActiveBlock } from '../../../src/core/rate/breaker/active-block.ts';
import {
  createBlock,
  expectedBlockTime,
  isBlackout,
  provesRecovery,
  scheduleProbe,
  probeDelay,
  probeInterval,
  probeOverdueFor,
} from '../../../src/core/rate/breaker/active-block.ts';
import { saveRevertibleState } from '../../../src/core/rate/decrease.ts';
import { ANY_REQUEST, makeRequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import type { Random } from '../../../src/core/scalars.ts';
import { rateState } from '../../support/core/rate-builders.ts';

const MIDDLE: Random = () => 0.5;
const NOTHING = { sentAt: 1000, retryAfterMs: undefined, attributes: undefined };

/** Begins at 1000, with a rate of 100 a second. */
function block(terms: Partial<ActiveBlock> = {}): ActiveBlock {
  const begun = createBlock(
    {
      cause: 'rejections',
      scope: [...ANY_REQUEST],
      rateBefore: 100,
      wasUnlimited: false,
      stateBefore: saveRevertibleState(rateState()),
      isResumed: false,
      isOverrun: false,
      probeTimeout: 30_000,
      interval: probeInterval,
    },
    1000,
  );
  return { ...begun, ...terms };
}

describe('the interval between probes', () => {
  test('is 50 ms · 1.5ⁿ, at most 5 s', () => {
    expect([0, 1, 2, 3].map((n) => probeInterval(n, 100))).toEqual([50, 75, 112.5, 168.75]);
    expect(probeInterval(11, 100)).toBeCloseTo(50 * 1.5 ** 11, 9); // 4325 ms
    expect([12, 16, 1000].map((n) => probeInterval(n, 100))).toEqual([5000, 5000, 5000]);
  });

  test('starts at the interval of what was accepted before, if that is longer', () => {
    expect(probeInterval(0, 20)).toBe(50);
    expect(probeInterval(0, 5)).toBe(200);
    expect(probeInterval(2, 5)).toBe(450);
    expect(probeInterval(0, 0.1)).toBe(5000);
    expect(probeInterval(0, Number.POSITIVE_INFINITY)).toBe(50);
  });
});

describe('the next probe', () => {
  test('is sent after the interval · U(0.75, 1.25)', () => {
    for (const [u, at] of [
      [0, 1037.5],
      [0.5, 1050],
      [0.999_999, 1062.499_975],
    ] as const) {
      const planned = block();
      scheduleProbe(planned, NOTHING, 30_000, 1000, () => u);
      expect(planned.probeAt).toBeCloseTo(at, 6);
    }
  });

  test('is never sent before the time that the upstream requests, plus 10 ms', () => {
    const planned = block();
    scheduleProbe(planned, { ...NOTHING, retryAfterMs: 700 }, 30_000, 1000, MIDDLE);
    expect(planned.probeAt).toBe(1710);
    scheduleProbe(planned, { ...NOTHING, retryAfterMs: 20 }, 30_000, 1100, MIDDLE); // 50 ms would be 1150: the earlier hint still applies
    expect(planned.probeAt).toBe(1710);
  });

  test('is sent at once for other clients than the held one, if it is the first', () => {
    const planned = block();
    const attributes = makeRequestAttributes('a', 'a', 0, '/', '');
    scheduleProbe(planned, { sentAt: 1000, retryAfterMs: 300_000, attributes }, 30_000, 1000, MIDDLE);
    expect(probeDelay(planned, 1000, makeRequestAttributes('b', 'b', 0, '/', ''))).toBe(50);
    expect(probeDelay(planned, 1000, attributes)).toBe(300_010);
  });

  test('is sent by its latest time, whatever the upstream requests, but not for the held client', () => {
    const planned = block({ failedProbes: 1 });
    const attributes = makeRequestAttributes('a', 'a', 0, '/', '');
    scheduleProbe(planned, { sentAt: 1000, retryAfterMs: 300_000, attributes }, 30_000, 1000, MIDDLE);
    expect(probeDelay(planned, 1000)).toBe(30_000);
    expect(probeDelay(planned, 1000, makeRequestAttributes('b', 'b', 0, '/', ''))).toBe(30_000);
    expect(probeDelay(planned, 1000, attributes)).toBe(300_010);
    expect(expectedBlockTime(planned, 1000, attributes)).toBe(300_010);
    scheduleProbe(planned, { ...NOTHING, sentAt: 40_000 }, 2000, 40_000, MIDDLE);
    expect(probeDelay(planned, 40_000, attributes)).toBe(261_010); // it still applies
  });

  test('may be sent when it is due and none is in flight', () => {
    const planned = block({ probeAt: 1050 });
    expect([1000, 1050, 1300].map((now) => probeDelay(planned, now))).toEqual([50, 0, 0]);
    expect([1000, 1050, 1300].map((now) => probeOverdueFor(planned, now))).toEqual([0, 0, 250]);
  });

  test('is delayed by the one in flight, for up to 30 s once several had no response', () => {
    const out = block({ probeAt: 1050, probeSentAt: 1060, overdueProbes: 4 });
    expect([1060, 31_059, 31_060].map((now) => probeDelay(out, now))).toEqual([30_000, 1, 0]);
    expect(probeOverdueFor(out, 20_000)).toBe(0);
  });
});

describe('the end of a block', () => {
  test('is expected with the next probe or, while one is in flight, with the one after it', () => {
    expect(expectedBlockTime(block({ probeAt: 1050 }), 1020)).toBe(30);
    expect(expectedBlockTime(block({ probeAt: 1050, probeSentAt: 1060, failedProbes: 1 }), 1100)).toBe(
      1060 + 112.5 - 1100,
    );
    expect(expectedBlockTime(block({ probeAt: 1050, probeSentAt: 1060 }), 1900)).toBe(1900 - 1135);
    expect(expectedBlockTime(block({ probeAt: 1050, probeSentAt: 1060 }), 3000)).toBe(60);
    expect(expectedBlockTime(block({ probeAt: 1050, probeSentAt: 1060, overdueProbes: 4 }), 9000)).toBe(31_060 - 9000);
    expect(expectedBlockTime(block({ probeAt: 1050, probeSentAt: 1060, overdueProbes: 4 }), 31_000)).toBe(60);
  });

  test('is proven by any accepted request sent later after rejections, but only by a probe after errors', () => {
    const rejected = block({ probeAt: 1050 });
    expect([999, 1000, 1001, 1050].map((at) => provesRecovery(rejected, at))).toEqual([false, false, true, true]);
    const failed = block({ cause: 'errors', probeAt: 1050 });
    expect([1001, 1049, 1050].map((at) => provesRecovery(failed, at))).toEqual([false, false, true]);
  });
});

test('three rejections in a row mean that nothing is accepted', () => {
  expect([0, 2, 3, 9].map((rejectedInRow) => isBlackout(rateState({ consecutiveRejections: rejectedInRow })))).toEqual([
    false,
    false,
    true,
    true,
  ]);
});
