import { describe, expect, test } from 'vitest';
import type { CutCause } from '../../../src/core/limits/limit-state.ts';
import { AdaptiveRate } from '../../../src/core/rate/adaptive-rate.ts';
import { estimateFromOverrun } from '../../../src/core/rate/overrun-estimator.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { longSendHistory, sendEvenly } from '../../support/core/rate-builders.ts';

describe('the estimate of an exceeded limit', () => {
  /** This many requests sent in each of these seconds, and this many of them rejected. */
  const account = (seconds: Readonly<Record<number, readonly [sent: number, rejected: number]>>) => {
    const long = longSendHistory();
    for (const [second, [sent, rejected]] of Object.entries(seconds)) {
      sendEvenly(long, sent, 1000 * Number(second), 1000 * Number(second) + 1000);
      for (let i = 0; i < rejected; i += 1) long.onRejected(1000 * Number(second) + i);
    }
    return long;
  };
  const CALM = { 2: [80, 0], 3: [80, 0] } as const;
  const OVERRUN = { 4: [120, 20], 5: [130, 32], 6: [140, 38] } as const;

  test('is based on what it accepts in whole seconds with rejections, and is a little lower', () => {
    const measured = estimateFromOverrun(account({ ...CALM, ...OVERRUN }), 7300);
    expect(measured?.ceiling).toBe(100); // of 100, 98, 102
    expect(measured?.rate).toBe(95);
  });

  test('is based on the time up to the second before the rejected request was sent', () => {
    const later = account({ ...CALM, ...OVERRUN, 7: [500, 1] });
    expect(estimateFromOverrun(later, 7300)?.ceiling).toBe(100);
    expect(estimateFromOverrun(later, 7000)?.ceiling).toBe(100);
    expect(estimateFromOverrun(later, 6999)?.ceiling).toBe(99); // of 100, 98
  });

  test('is based on the last five seconds', () => {
    const long = account({ ...OVERRUN, 10: [60, 10] });
    expect(estimateFromOverrun(long, 11_999)?.ceiling).toBe((102 + 50) / 2); // from the sixth on
    expect(estimateFromOverrun(long, 12_000)?.ceiling).toBe(50);
  });

  test('is based on all that it accepts, if the seconds with rejections are those in which its window is used up', () => {
    const long = account({ 2: [300, 0], 3: [100, 100], 4: [100, 100], 5: [100, 100], 6: [100, 100] });
    expect(estimateFromOverrun(long, 7000)?.ceiling).toBeCloseTo(300 / 4.999, 9);
  });

  test('is undefined without a whole second to measure', () => {
    expect(estimateFromOverrun(account(CALM), 7300)).toBeUndefined();
    expect(estimateFromOverrun(account({ 7: [120, 20] }), 7300)).toBeUndefined();
    expect(estimateFromOverrun(account({ 1: [120, 20] }), 7300)).toBeUndefined();
    expect(estimateFromOverrun(longSendHistory(), 7300)).toBeUndefined();
  });
});

/** A configured limit of 80 that is exceeded: 120 are sent a second, and 20 of them rejected. */
class Overrun {
  readonly rate = new AdaptiveRate({ initialRate: 80, maxRate: 1000, minRate: 0.1, cooldown: 1000 }, () => 0.5);
  now: Millis = 0;

  until(end: Millis, perSecond = 120): this {
    for (let i = 0; this.now < end; i += 1) {
      this.rate.advance(this.now, false);
      this.rate.onSent(this.now);
      if (i % 6 < 5) this.rate.onAccepted(this.now, 0, this.now);
      else this.reject();
      this.now += 1000 / perSecond;
    }
    this.now = end;
    return this;
  }

  reject(): CutCause | undefined {
    const { now } = this;
    return this.rate.onRejected(
      { sentAt: now, inFlightAtSend: 0, retryAfterMs: undefined, activeClients: 1, overrun: true },
      now,
    );
  }
}

describe('a rate that is exceeded', () => {
  test('is not cut by rejections beyond it before the estimate', () => {
    const { rate } = new Overrun().until(1000);
    expect(rate.phase).toBe('restoring');
    expect(rate.rate).toBeGreaterThanOrEqual(80);
  });

  test('is set to the estimate, reported once as a cut', () => {
    const overrun = new Overrun().until(1000);
    expect(overrun.reject()).toBe('small');
    expect(overrun.rate.ceiling).toBe(100);
    expect(overrun.rate.rate).toBe(95);
    overrun.until(4300);
    expect(overrun.rate.phase).toBe('cooldown');
    expect(overrun.rate.ceiling).toBeCloseTo(100, 0);
    expect(overrun.reject()).toBeUndefined(); // the measurement continues
    expect(overrun.rate.phase).toBe('cooldown');
  });

  test('does not grow while the estimate still includes rejections', () => {
    const { rate } = new Overrun().until(4001);
    rate.advance(8500, false);
    expect(rate.phase).toBe('cooldown');
    rate.advance(9001, false);
    expect(rate.phase).toBe('restoring');
  });

  test('is blocked by rejections in a row only if nothing was accepted for a second', () => {
    const overrun = new Overrun().until(995);
    for (let i = 0; i < 10; i += 1) expect(overrun.reject()).toBeUndefined();
    expect(overrun.rate.phase).toBe('restoring');
    overrun.rate.onAccepted(995, 0, 995);
    for (let i = 0; i < 10; i += 1) expect(overrun.reject()).toBeUndefined();
    overrun.now = 1994;
    expect(overrun.reject()).toBe('small'); // as measured
    overrun.now = 1995;
    expect(overrun.reject()).toBe('blocked');
  });
});
