import { describe, expect, test } from 'vitest';
import { LocalMeter } from '../../src/core/limits/meter.ts';
import { SteeredMeter } from '../../src/core/limits/override-meter.ts';
import type { Order, Steering } from '../../src/core/limits/operator-override.ts';
import { isSteered, obey, UNSTEERED } from '../../src/core/limits/operator-override.ts';

const SETTINGS = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };

function steered(...orders: readonly Order[]): {
  readonly own: LocalMeter;
  readonly meter: SteeredMeter;
  order(order: Order): void;
} {
  const own = new LocalMeter(SETTINGS, () => 0.5);
  const meter = new SteeredMeter(own);
  let steering: Steering = UNSTEERED;
  const order = (each: Order): void => {
    steering = obey(steering, each);
    meter.steer(steering, 0);
  };
  for (const each of orders) order(each);
  return { own, meter, order };
}

/** As many as leave in a second, each as soon as it may. */
function countIn(meter: SteeredMeter, from: number, reject: (n: number) => boolean): number {
  let count = 0;
  for (let now = from; now < from + 1000; now += 1) {
    meter.advance(now, true);
    while (meter.delay(now) === 0 && count < 10_000) {
      meter.take(now, now);
      meter.giveBack();
      const among = meter.sent(now);
      meter.ended(now);
      if (reject(count)) meter.rejected({ sentAt: now, among, retryAfter: undefined, activeClients: 1 }, now);
      else meter.accepted(now, among, now);
      count += 1;
    }
  }
  return count;
}

class CountingMeter extends LocalMeter {
  given = 0;

  override giveBack(): void {
    this.given += 1;
    super.giveBack();
  }
}

describe('orders', () => {
  test('a pin and a block are independent of each other', () => {
    const both = obey(obey(UNSTEERED, { do: 'pin', rate: 5 }), { do: 'block', until: 100 });
    expect(both).toEqual({ pinned: 5, blockedUntil: 100 });
    expect(obey(both, { do: 'unblock' })).toEqual({ pinned: 5, blockedUntil: Number.NEGATIVE_INFINITY });
    expect(obey(both, { do: 'unpin' })).toEqual({ pinned: undefined, blockedUntil: 100 });
  });

  test('a block whose time is over steers nothing', () => {
    const blocked = obey(UNSTEERED, { do: 'block', until: 100 });
    expect([99, 100].map((now) => isSteered(blocked, now))).toEqual([true, false]);
  });
});

describe('a pinned meter', () => {
  test('lets pass what it was told, exactly, and no burst', () => {
    expect(countIn(steered({ do: 'pin', rate: 50 }).meter, 1000, () => false)).toBe(50);
  });

  test('lets as much pass while all of it is rejected, and tells of no cut', () => {
    const { meter } = steered({ do: 'pin', rate: 50 });
    expect(countIn(meter, 1000, () => true)).toBe(50);
    expect(meter.rate(2000)).toBe(50);
    expect(meter.phase).not.toBe('blocked');
  });

  test('learns beside it, and goes by that when it is let go', () => {
    const { meter, own, order } = steered({ do: 'pin', rate: 100 });
    countIn(meter, 1000, (n) => n % 5 === 4);
    expect(own.phase).not.toBe('open');
    const learned = meter.learned(2000);
    expect(learned).toBeLessThan(100);
    order({ do: 'unpin' });
    expect(meter.rate(2000)).toBe(own.rate(2000));
    expect(meter.phase).toBe(own.phase);
  });

  test('below what would pass, is no reason to believe in less or more', () => {
    const { meter, own } = steered({ do: 'pin', rate: 10 });
    for (let second = 1; second < 60; second += 1) countIn(meter, 1000 * second, () => false);
    expect(own.phase).toBe('open');
    expect(meter.rate(60_000)).toBe(10);
  });

  test('keeps to a stop that the upstream asks for', () => {
    const { meter } = steered({ do: 'pin', rate: 10 });
    meter.stop(5000);
    expect(meter.delay(1000)).toBe(4000);
    expect(meter.delay(5000)).toBe(0);
  });

  test('far above the limit, learns where that is: what it was told to send beyond it does not count', () => {
    const { meter, own } = steered({ do: 'pin', rate: 100 });
    const phases = new Set<string>();
    for (let second = 1; second < 30; second += 1) {
      countIn(meter, 1000 * second, (n) => {
        if (second > 5) phases.add(own.phase);
        return n % 5 !== 4;
      });
    }
    expect([...phases]).not.toContain('blocked'); // though most are rejected in a row
    expect(meter.learned(30_000)).toBeGreaterThan(10);
    expect(meter.learned(30_000)).toBeLessThan(40);
  });

  test('gives back to each what was taken of it', () => {
    const own = new CountingMeter(SETTINGS, () => 0.5);
    const meter = new SteeredMeter(own);
    meter.take(0, 0);
    meter.steer({ pinned: 10, blockedUntil: Number.NEGATIVE_INFINITY }, 0);
    meter.take(1, 1);
    meter.giveBack();
    expect(own.given).toBe(0);
    meter.giveBack();
    expect(own.given).toBe(1);
  });
});

describe('a blocked meter', () => {
  test('lets nothing pass, no probe either, until its time is over', () => {
    const { meter } = steered({ do: 'block', until: 3000 });
    meter.advance(1000, true);
    expect({
      phase: meter.phase,
      delay: meter.delay(1000),
      expected: meter.expected(1000),
      overdue: meter.overdue(1000),
    }).toEqual({
      phase: 'blocked',
      delay: 2000,
      expected: 2000,
      overdue: 0,
    });
    meter.advance(3000, true);
    expect({ phase: meter.phase, delay: meter.delay(3000) }).toEqual({ phase: 'open', delay: 0 });
  });

  test('without an end, tells those who wait to come and see', () => {
    const { meter } = steered({ do: 'block', until: Number.POSITIVE_INFINITY });
    expect([meter.delay(1000), meter.expected(1000), meter.blockedUntil]).toEqual([
      Number.POSITIVE_INFINITY,
      30_000,
      undefined,
    ]);
    expect(meter.expected(1e9)).toBe(30_000);
  });

  test('though pinned, is blocked; and pinned again after', () => {
    const { meter, order } = steered({ do: 'pin', rate: 10 }, { do: 'block', until: Number.POSITIVE_INFINITY });
    expect([meter.phase, meter.delay(0)]).toEqual(['blocked', Number.POSITIVE_INFINITY]);
    order({ do: 'unblock' });
    expect([meter.phase, meter.rate(0)]).toEqual(['open', 10]);
  });
});

describe('a blockade by the upstream', () => {
  test.each(['rejections', 'errors'])(
    'after %s is probed at once when it is unblocked, and ends with the first answer',
    (cause) => {
      const own = new LocalMeter(SETTINGS, () => 0.5);
      const meter = new SteeredMeter(own);
      for (let i = 0; i < 20; i += 1) {
        const among = meter.sent(i);
        meter.ended(i);
        if (cause === 'errors') meter.failed({ sentAt: i, retryAfter: 60_000 }, i);
        else meter.rejected({ sentAt: i, among, retryAfter: 60_000, activeClients: 1 }, i);
      }
      expect(meter.phase).toBe('blocked');
      expect(meter.delay(100)).toBeGreaterThan(10_000);
      meter.probeNow(100);
      expect(meter.delay(100)).toBe(0);
      expect(meter.take(100, 100)).toBe(true);
      expect(meter.delay(101)).toBeGreaterThan(0); // one at a time
      meter.accepted(100, meter.sent(100), 120);
      expect(meter.phase).not.toBe('blocked');
    },
  );
});
