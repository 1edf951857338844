import { describe, expect, test } from 'vitest';
import { BbrMeter } from '../../bench/control/baselines/bbr.ts';
import { CinnamonTuner } from '../../bench/control/baselines/cinnamon.ts';
import { DeliveryRate } from '../../bench/control/baselines/delivery-rate.ts';
import { GradientController } from '../../bench/control/baselines/envoy.ts';
import { FailsafeLimit } from '../../bench/control/baselines/failsafe.ts';
import { Gradient2Limit } from '../../bench/control/baselines/gradient2.ts';
import type { InFlightLimit } from '../../bench/control/baselines/in-flight-meter.ts';
import { runJob } from '../../bench/control/job.ts';

/** Responses at one time, each after `rtt`, sent while `among` were in flight. */
function respond(limit: InFlightLimit, now: number, { count = 1, rtt = 100, among = limit.limit } = {}): void {
  for (let i = 0; i < count; i += 1) limit.update(rtt, among, false, { now, inFlight: among });
}

describe("Netflix's Gradient2", () => {
  /** Windows of a second each, from `from` on. */
  function respondFor(
    limit: Gradient2Limit,
    from: number,
    seconds: number,
    shape: { rtt?: number; among?: number } = {},
  ) {
    for (let now = from; now < from + 1002 * seconds; now += 1002) {
      respond(limit, now + 500, { count: 10, ...shape });
      respond(limit, now + 1001, shape);
    }
  }

  test('grows by 0.2 · 4 in a window of a second at an unchanged latency', () => {
    const limit = new Gradient2Limit();
    respond(limit, 1);
    respondFor(limit, 1, 6);
    expect(limit.limit).toBe(24);
  });

  test('shrinks by the ratio of the long-term to the recent latency, by a half at most', () => {
    const limit = new Gradient2Limit();
    respond(limit, 1);
    respondFor(limit, 1, 26);
    expect(limit.limit).toBe(40);
    respondFor(limit, 1 + 26 * 1002, 1, { rtt: 1000 });
    expect(limit.limit).toBe(37); // 0.8 · 40.8 + 0.2 · (20.4 + 4)
  });

  test('tolerates a latency of 1.5 times the long-term one', () => {
    const limit = new Gradient2Limit();
    respond(limit, 1);
    respondFor(limit, 1, 20);
    const before = limit.limit;
    respondFor(limit, 1 + 20 * 1002, 2, { rtt: 145 });
    expect(limit.limit).toBe(before + 1);
  });

  test('keeps its limit while fewer than half are in flight', () => {
    const limit = new Gradient2Limit();
    respondFor(limit, 1, 6, { among: 9 });
    expect(limit.limit).toBe(20);
  });
});

describe("Envoy's gradient controller", () => {
  function measured(): GradientController {
    const limit = new GradientController(() => 0);
    respond(limit, 1000, { count: 50 });
    return limit;
  }

  test('has three requests in flight until it has measured the minRTT', () => {
    const limit = new GradientController(() => 0);
    respond(limit, 1000, { count: 49 });
    expect(limit.limit).toBe(3);
  });

  test('scales its limit by the gradient, with the square root of it as headroom', () => {
    const limit = measured();
    respond(limit, 1050);
    respond(limit, 1100, { rtt: 250 });
    expect(limit.limit).toBe(5); // 3 · 1.25 + √3.75
    respond(limit, 1200, { rtt: 250 });
    expect(limit.limit).toBe(4); // 5 · 0.5 + √2.5
  });

  test('measures the minRTT again after a minute, and restores its limit then', () => {
    const limit = measured();
    respond(limit, 1050);
    respond(limit, 1100);
    respond(limit, 61_000);
    const before = 8; // 5 · 1.25 + √6.25
    expect(limit.limit).toBe(3);
    respond(limit, 61_200, { count: 50, rtt: 150 });
    expect(limit.limit).toBe(before);
  });

  test('measures the minRTT again when five updates in sequence leave the limit at three', () => {
    const limit = measured();
    for (let i = 1; i <= 6; i += 1) respond(limit, 1000 + 100 * i, { rtt: 400 });
    // Sent before the measurement began: not counted.
    respond(limit, 1650, { count: 49, rtt: 400 });
    respond(limit, 3000, { count: 50, rtt: 400 });
    respond(limit, 3050, { rtt: 400 });
    respond(limit, 3100, { rtt: 400 });
    expect(limit.limit).toBe(5);
  });
});

describe('the adaptive limiter of failsafe-go', () => {
  const warm = (): FailsafeLimit => {
    const limit = new FailsafeLimit();
    for (let second = 1; second <= 20; second += 1) respond(limit, 1001 * second, { count: 50 });
    return limit;
  };

  test('grows by one in a window without a queue', () => {
    expect(warm().limit).toBe(40);
  });

  test('shrinks once the median of five windows shows a queue', () => {
    const limit = warm();
    respond(limit, 22_000, { count: 50, rtt: 1000 });
    respond(limit, 25_000, { count: 50, rtt: 1000 });
    expect(limit.limit).toBe(42);
    respond(limit, 28_000, { count: 50, rtt: 1000 });
    expect(limit.limit).toBe(41);
  });

  test('has at most five times what is in flight', () => {
    const limit = new FailsafeLimit();
    respond(limit, 1, { count: 50, among: 2 });
    expect(limit.limit).toBe(19);
  });
});

describe("the auto-tuner of Uber's Cinnamon", () => {
  test('grows by one in an interval without a queue, and shrinks once its smoothed p90 shows one', () => {
    const limit = new CinnamonTuner();
    respond(limit, 3000, { count: 250 });
    respond(limit, 6000, { count: 250, rtt: 1000 });
    expect(limit.limit).toBe(22);
    respond(limit, 9000, { count: 250, rtt: 1000 });
    expect(limit.limit).toBe(21);
  });

  test('waits for 250 requests and for three seconds', () => {
    const limit = new CinnamonTuner();
    respond(limit, 2999, { count: 300 });
    expect(limit.limit).toBe(20);
    respond(limit, 3000);
    expect(limit.limit).toBe(21);
    respond(limit, 60_000, { count: 249 });
    expect(limit.limit).toBe(21);
  });
});

describe('BBR', () => {
  test('estimates the rate of delivery, of the last ten rounds', () => {
    const rate = new DeliveryRate();
    const inFlight = (i: number): number => Math.min(i, 10);
    for (let i = 0; i < 100; i += 1) {
      rate.onSent(10 * i, inFlight(i), false);
      if (i >= 10) rate.onDelivered(10 * (i - 10), 10 * i);
    }
    expect(rate.max).toBeCloseTo(0.1, 2);
    expect(rate.round).toBeGreaterThan(7);
    expect(rate.round).toBeLessThan(12);
  });

  test('fills a service of constant latency almost without a queue there', () => {
    const { goodput, upstreamP99 } = run('8 workers of 50 ms, constant', 'bbr');
    expect(goodput).toBeGreaterThan(0.97);
    expect(upstreamP99).toBeLessThan(100);
  });

  test('has four requests in flight while it measures the minimum latency anew', () => {
    const meter = new BbrMeter();
    const mostAt = new Map<number, number>();
    let sent: number[] = [];
    for (let now = 0; now <= 11_000; now += 1) {
      meter.advance(now, true);
      const latency = now < 500 ? 100 : 150;
      while (sent[0] !== undefined && sent[0] <= now - latency) {
        meter.onAccepted(sent[0], 0, now);
        meter.onEnded();
        sent = sent.slice(1);
      }
      while (meter.delay(now) <= 0) {
        meter.take(now, now);
        meter.onSent(now);
        sent.push(now);
      }
      mostAt.set(now, meter.inFlight);
    }
    expect(mostAt.get(10_000)).toBeGreaterThan(20);
    const after = [...mostAt].filter(([now]) => now > 10_000).map(([, most]) => most);
    expect(Math.min(...after)).toBeLessThanOrEqual(4);
    expect(after.at(-1)).toBeGreaterThan(4);
  });
});

const run = (row: string, controller: string) => runJob({ row, controller, seed: 301, short: true });

describe('the figures of services that queue', () => {
  test.each(['8 workers of 50 ms', '4 shared workers of 100 ms', '40 workers of 50 ms, 8 connections of 20 ms'])(
    'the oracle uses %s fully, with hardly a wait there',
    (row) => {
      const { goodput, upstreamP50, abandoned } = run(row, 'oracle');
      expect(goodput).toBeGreaterThan(0.9);
      expect(upstreamP50).toBeLessThan(50);
      expect(abandoned).toBe(0);
    },
  );

  test('without control, the upstream works for requests that have timed out', () => {
    const { goodput, abandoned, overOracle } = run('8 workers of 50 ms', 'none');
    expect(goodput).toBeLessThan(0.5);
    expect(abandoned).toBeGreaterThan(0.5);
    expect(overOracle).toBeDefined();
  });
});
