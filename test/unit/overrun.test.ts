import { describe, expect, test } from 'vitest';
import type { CutCause } from '../../src/core/events/proxy-events.ts';
import { AdaptiveRate } from '../../src/core/rate/adaptive-rate.ts';
import { measure } from '../../src/core/rate/overrun-estimator.ts';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import { longAccount, sendEvenly } from '../support/rate-state.ts';

describe('a limit that is overrun is measured', () => {
  /** In each of these seconds so many are sent, and so many of them rejected. */
  const account = (seconds: Readonly<Record<number, readonly [sent: number, rejected: number]>>) => {
    const long = longAccount();
    for (const [second, [sent, rejected]] of Object.entries(seconds)) {
      sendEvenly(long, sent, 1000 * Number(second), 1000 * Number(second) + 1000);
      for (let i = 0; i < rejected; i += 1) long.rejected(1000 * Number(second) + i);
    }
    return long;
  };
  const CALM = { 2: [80, 0], 3: [80, 0] } as const;
  const OVERRUN = { 4: [120, 20], 5: [130, 32], 6: [140, 38] } as const;

  test('by what it accepts in those whole seconds in which it rejects; a little below is safe', () => {
    const measured = measure(account({ ...CALM, ...OVERRUN }), 7300);
    expect(measured?.ceiling).toBe(100); // of 100, 98, 102
    expect(measured?.rate).toBe(95);
  });

  test('up to the second before the rejected one left', () => {
    const later = account({ ...CALM, ...OVERRUN, 7: [500, 1] });
    expect(measure(later, 7300)?.ceiling).toBe(100);
    expect(measure(later, 7000)?.ceiling).toBe(100);
    expect(measure(later, 6999)?.ceiling).toBe(99); // of 100, 98
  });

  test('over the last five seconds', () => {
    const long = account({ ...OVERRUN, 10: [60, 10] });
    expect(measure(long, 11_999)?.ceiling).toBe((102 + 50) / 2); // from the sixth on
    expect(measure(long, 12_000)?.ceiling).toBe(50);
  });

  test('by all that it accepts, where the seconds in which it rejects are those in which its window is used up', () => {
    const long = account({ 2: [300, 0], 3: [100, 100], 4: [100, 100], 5: [100, 100], 6: [100, 100] });
    expect(measure(long, 7000)?.ceiling).toBeCloseTo(300 / 4.999, 9);
  });

  test('not while there is no whole second to go by', () => {
    expect(measure(account(CALM), 7300)).toBeUndefined();
    expect(measure(account({ 7: [120, 20] }), 7300)).toBeUndefined();
    expect(measure(account({ 1: [120, 20] }), 7300)).toBeUndefined();
    expect(measure(longAccount(), 7300)).toBeUndefined();
  });
});

/** A known limit of 80 that is overrun: 120 are sent a second, and 20 of them rejected. */
class Overrun {
  readonly rate = new AdaptiveRate({ initialRate: 80, maxRate: 1000, minRate: 0.1, cooldown: 1000 }, () => 0.5);
  now: Millis = 0;

  until(end: Millis, perSecond = 120): this {
    for (let i = 0; this.now < end; i += 1) {
      this.rate.advance(this.now, false);
      this.rate.sent(this.now);
      if (i % 6 < 5) this.rate.accepted(this.now, 0, this.now);
      else this.reject();
      this.now += 1000 / perSecond;
    }
    this.now = end;
    return this;
  }

  reject(): CutCause | undefined {
    const { now } = this;
    return this.rate.rejected({ sentAt: now, among: 0, retryAfter: undefined, activeClients: 1, overrun: true }, now);
  }
}

describe('a rate that is not kept to', () => {
  test('is not cut by what is rejected beyond it, before that is measured', () => {
    const { rate } = new Overrun().until(1000);
    expect(rate.phase).toBe('restoring');
    expect(rate.rate).toBeGreaterThanOrEqual(80);
  });

  test('becomes what is measured, once told as a cut', () => {
    const overrun = new Overrun().until(1000);
    expect(overrun.reject()).toBe('small');
    expect(overrun.rate.ceiling).toBe(100);
    expect(overrun.rate.rate).toBe(95);
    overrun.until(4300);
    expect(overrun.rate.phase).toBe('cooldown');
    expect(overrun.rate.ceiling).toBeCloseTo(100, 0);
    expect(overrun.reject()).toBeUndefined(); // it goes on being measured
    expect(overrun.rate.phase).toBe('cooldown');
  });

  test('does not grow while what is measured still speaks of rejections', () => {
    const { rate } = new Overrun().until(4001);
    rate.advance(8500, false);
    expect(rate.phase).toBe('cooldown');
    rate.advance(9001, false);
    expect(rate.phase).toBe('restoring');
  });

  test('is blocked by rejections in a row only when nothing was accepted for a second', () => {
    const overrun = new Overrun().until(995);
    for (let i = 0; i < 10; i += 1) expect(overrun.reject()).toBeUndefined();
    expect(overrun.rate.phase).toBe('restoring');
    overrun.rate.accepted(995, 0, 995);
    for (let i = 0; i < 10; i += 1) expect(overrun.reject()).toBeUndefined();
    overrun.now = 1994;
    expect(overrun.reject()).toBe('small'); // as measured
    overrun.now = 1995;
    expect(overrun.reject()).toBe('blocked');
  });
});
