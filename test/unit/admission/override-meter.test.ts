import { describe, expect, test } from 'vitest';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import { OverrideMeter } from '../../../src/core/limits/override-meter.ts';
import type { OverrideChange, OperatorOverride } from '../../../src/core/limits/operator-override.ts';
import { isOverridden, applyOverride, NO_OVERRIDE } from '../../../src/core/limits/operator-override.ts';

const SETTINGS = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };

function steered(...orders: readonly OverrideChange[]): {
  readonly own: LocalMeter;
  readonly meter: OverrideMeter;
  order(order: OverrideChange): void;
} {
  const own = new LocalMeter(SETTINGS, () => 0.5);
  const meter = new OverrideMeter(own);
  let steering: OperatorOverride = NO_OVERRIDE;
  const order = (each: OverrideChange): void => {
    steering = applyOverride(steering, each);
    meter.setOverride(steering, 0);
  };
  for (const each of orders) order(each);
  return { own, meter, order };
}

/** The number admitted in a second, each as early as possible. */
function countIn(meter: OverrideMeter, from: number, reject: (n: number) => boolean): number {
  let count = 0;
  for (let now = from; now < from + 1000; now += 1) {
    meter.advance(now, true);
    while (meter.delay(now) === 0 && count < 10_000) {
      meter.take(now, now);
      meter.release();
      const among = meter.onSent(now);
      meter.onEnded(now);
      if (reject(count)) {
        meter.onRejected({ sentAt: now, inFlightAtSend: among, retryAfterMs: undefined, activeClients: 1 }, now);
      } else meter.onAccepted(now, among, now);
      count += 1;
    }
  }
  return count;
}

class CountingMeter extends LocalMeter {
  given = 0;

  override release(): void {
    this.given += 1;
    super.release();
  }
}

describe('overrides', () => {
  test('a pin and a block are independent of each other', () => {
    const both = applyOverride(applyOverride(NO_OVERRIDE, { action: 'pin', rate: 5 }), { action: 'block', until: 100 });
    expect(both).toEqual({ pinnedRate: 5, blockedUntil: 100 });
    expect(applyOverride(both, { action: 'unblock' })).toEqual({
      pinnedRate: 5,
      blockedUntil: Number.NEGATIVE_INFINITY,
    });
    expect(applyOverride(both, { action: 'unpin' })).toEqual({ pinnedRate: undefined, blockedUntil: 100 });
  });

  test('an expired block has no effect', () => {
    const blocked = applyOverride(NO_OVERRIDE, { action: 'block', until: 100 });
    expect([99, 100].map((now) => isOverridden(blocked, now))).toEqual([true, false]);
  });
});

describe('a pinned limit', () => {
  test('admits exactly the given rate, and no burst', () => {
    expect(countIn(steered({ action: 'pin', rate: 50 }).meter, 1000, () => false)).toBe(50);
  });

  test('admits as much while every request is rejected, and reports no cut', () => {
    const { meter } = steered({ action: 'pin', rate: 50 });
    expect(countIn(meter, 1000, () => true)).toBe(50);
    expect(meter.rate(2000)).toBe(50);
    expect(meter.phase).not.toBe('blocked');
  });

  test('learns in the background, and applies the learned rate when the pin is removed', () => {
    const { meter, own, order } = steered({ action: 'pin', rate: 100 });
    countIn(meter, 1000, (n) => n % 5 === 4);
    expect(own.phase).not.toBe('open');
    const learned = meter.learnedRate(2000);
    expect(learned).toBeLessThan(100);
    order({ action: 'unpin' });
    expect(meter.rate(2000)).toBe(own.rate(2000));
    expect(meter.phase).toBe(own.phase);
  });

  test('below the learned rate leaves that rate unchanged', () => {
    const { meter, own } = steered({ action: 'pin', rate: 10 });
    for (let second = 1; second < 60; second += 1) countIn(meter, 1000 * second, () => false);
    expect(own.phase).toBe('open');
    expect(meter.rate(60_000)).toBe(10);
  });

  test('enforces a stop that the upstream requests', () => {
    const { meter } = steered({ action: 'pin', rate: 10 });
    meter.stop(5000);
    expect(meter.delay(1000)).toBe(4000);
    expect(meter.delay(5000)).toBe(0);
  });

  test('far above the limit still learns the limit: rejections above the learned rate cause no block', () => {
    const { meter, own } = steered({ action: 'pin', rate: 100 });
    const phases = new Set<string>();
    for (let second = 1; second < 30; second += 1) {
      countIn(meter, 1000 * second, (n) => {
        if (second > 5) phases.add(own.phase);
        return n % 5 !== 4;
      });
    }
    expect([...phases]).not.toContain('blocked'); // though most are rejected in a row
    expect(meter.learnedRate(30_000)).toBeGreaterThan(10);
    expect(meter.learnedRate(30_000)).toBeLessThan(40);
  });

  test('releases each token at the meter from which it was taken', () => {
    const own = new CountingMeter(SETTINGS, () => 0.5);
    const meter = new OverrideMeter(own);
    meter.take(0, 0);
    meter.setOverride({ pinnedRate: 10, blockedUntil: Number.NEGATIVE_INFINITY }, 0);
    meter.take(1, 1);
    meter.release();
    expect(own.given).toBe(0);
    meter.release();
    expect(own.given).toBe(1);
  });
});

describe('a blocked limit', () => {
  test('admits nothing, including probes, until its end', () => {
    const { meter } = steered({ action: 'block', until: 3000 });
    meter.advance(1000, true);
    expect({
      phase: meter.phase,
      delay: meter.delay(1000),
      expected: meter.expectedDelay(1000),
      overdue: meter.probeOverdueFor(1000),
    }).toEqual({
      phase: 'blocked',
      delay: 2000,
      expected: 2000,
      overdue: 0,
    });
    meter.advance(3000, true);
    expect({ phase: meter.phase, delay: meter.delay(3000) }).toEqual({ phase: 'open', delay: 0 });
  });

  test('without an end expects a delay of 30 s, for the Retry-After of waiting clients', () => {
    const { meter } = steered({ action: 'block', until: Number.POSITIVE_INFINITY });
    expect([meter.delay(1000), meter.expectedDelay(1000), meter.blockedUntil]).toEqual([
      Number.POSITIVE_INFINITY,
      30_000,
      undefined,
    ]);
    expect(meter.expectedDelay(1e9)).toBe(30_000);
  });

  test('stays blocked although it is pinned, and is pinned again afterwards', () => {
    const { meter, order } = steered({ action: 'pin', rate: 10 }, { action: 'block', until: Number.POSITIVE_INFINITY });
    expect([meter.phase, meter.delay(0)]).toEqual(['blocked', Number.POSITIVE_INFINITY]);
    order({ action: 'unblock' });
    expect([meter.phase, meter.rate(0)]).toEqual(['open', 10]);
  });
});

describe('a block by the upstream', () => {
  test.each(['rejections', 'errors'])(
    'after %s is probed at once when the override is removed, and ends with the first accepted response',
    (cause) => {
      const own = new LocalMeter(SETTINGS, () => 0.5);
      const meter = new OverrideMeter(own);
      for (let i = 0; i < 20; i += 1) {
        const among = meter.onSent(i);
        meter.onEnded(i);
        if (cause === 'errors') meter.onFailed({ sentAt: i, retryAfterMs: 60_000 }, i);
        else meter.onRejected({ sentAt: i, inFlightAtSend: among, retryAfterMs: 60_000, activeClients: 1 }, i);
      }
      expect(meter.phase).toBe('blocked');
      expect(meter.delay(100)).toBeGreaterThan(10_000);
      meter.probeNow(100);
      expect(meter.delay(100)).toBe(0);
      expect(meter.take(100, 100)).toBe(true);
      expect(meter.delay(101)).toBeGreaterThan(0); // one at a time
      meter.onAccepted(100, meter.onSent(100), 120);
      expect(meter.phase).not.toBe('blocked');
    },
  );
});
