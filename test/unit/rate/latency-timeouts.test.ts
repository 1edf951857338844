/** Requests that time out at a service that becomes slow. */
import { describe, expect, test } from 'vitest';
import { LatencyLimiter } from '../../../src/core/rate/latency-limiter.ts';
import { LatencyTrend } from '../../../src/core/rate/latency-trend.ts';
import { ThroughputMeasurement } from '../../../src/core/rate/throughput-measurement.ts';
import type { Millis } from '../../../src/core/scalars.ts';

describe('the latency trend', () => {
  const trend = (): LatencyTrend => {
    const latency = new LatencyTrend();
    for (let i = 0; i < 64; i += 1) latency.onAnswer(100);
    return latency;
  };

  test('counts the share of requests that end late without an answer, as a moving average', () => {
    const latency = trend();
    expect(latency.timeoutShare).toBe(0);
    for (let i = 0; i < 2; i += 1) latency.onTimeout(1000);
    expect(latency.timeoutShare).toBeCloseTo(1 - (15 / 16) ** 2, 12);
    latency.onAnswer(100);
    expect(latency.timeoutShare).toBeCloseTo((15 / 16) * (1 - (15 / 16) ** 2), 12);
    latency.forgetTimeouts();
    expect(latency.timeoutShare).toBe(0);
  });

  test('takes no request for slow that fails at once, nor any before the first answer', () => {
    expect([1, 50, 101].map((latency) => trend().isSlow(latency))).toEqual([false, false, true]);
    expect(new LatencyTrend().isSlow(1000)).toBe(false);
  });

  test('takes an abandoned request for slow if it took twice the lowest usual mean', () => {
    const latency = trend();
    expect(latency.onAbandoned(10_000, 4)).toBe(false); // no mean is known yet
    latency.updateBase(true);
    expect([199, 201].map((after) => latency.onAbandoned(after, 4))).toEqual([false, true]);
    expect(new LatencyTrend().onAbandoned(1000, 4)).toBe(false);
  });

  test.each([
    [4, 16],
    [40, 40],
  ])('takes it for slow sooner if, with %i in flight, more than %i in a row are abandoned', (inFlight, enough) => {
    const latency = new LatencyTrend();
    for (let i = 0; i < 16; i += 1) latency.onAnswer(100 + 100 * i); // a service that is overloaded from the start
    latency.updateBase(true);
    expect(latency.base).toBe(850);
    const abandon = (count: number, after = 1000): boolean[] =>
      Array.from({ length: count }, () => latency.onAbandoned(after, inFlight));
    expect(abandon(100, 150)).not.toContain(true); // an impatient client
    expect(abandon(enough)).not.toContain(true);
    expect(latency.isCollapsed).toBe(false);
    expect(abandon(1)).toEqual([true]);
    expect(latency.isCollapsed).toBe(true);
    latency.onAnswer(1000);
    expect(latency.isCollapsed).toBe(false);
    expect(abandon(enough)).not.toContain(true);
  });

  test('learns a latency from a timeout only if it is longer than the mean', () => {
    const latency = new LatencyTrend();
    for (let i = 0; i < 64; i += 1) latency.onAnswer(i % 2 === 0 ? 50 : 150);
    const { mean } = latency;
    latency.onTimeout(mean - 1);
    expect(latency.mean).toBe(mean);
    latency.onTimeout(2 * mean);
    expect(latency.mean).toBeCloseTo(mean + mean / 64, 12);
  });
});

test('a measurement counts timeouts among the requests that end, not among the answers', () => {
  const measurement = new ThroughputMeasurement(0);
  measurement.onAnswer(4, 0);
  measurement.onTimeout(6, 500);
  measurement.onAnswer(5, 1000);
  expect([measurement.count, measurement.ends, measurement.rate, measurement.endRate]).toEqual([1, 2, 1, 2]);
  expect([measurement.inFlight, measurement.duration]).toEqual([5, 1000]);
});

/** Answers or timeouts, one each 100 ms, of requests that lasted 400 ms. Returns the time after the last one. */
function end(limiter: LatencyLimiter, kinds: string, start: Millis, inFlight: number): Millis {
  let now = start;
  for (const kind of kinds) {
    if (kind === 'a') limiter.onAnswer(400, inFlight, now, false);
    else limiter.onTimeout(800, inFlight, now, false);
    now += 100;
  }
  return now;
}

describe('a limiter', () => {
  test('tests for a queue if more than a quarter of the requests time out, although no response is slower', () => {
    const limiter = new LatencyLimiter();
    let now = end(limiter, 'a'.repeat(64), 0, 8);
    now = end(limiter, 'aaat'.repeat(3), now, 8);
    expect(limiter.limit).toBe(Number.POSITIVE_INFINITY);
    end(limiter, 'at'.repeat(16), now, 8);
    expect(limiter.limit).toBeLessThan(8);
  });

  test('does not count requests that fail at once, before a test and in one', () => {
    const [limiter, other] = [new LatencyLimiter(), new LatencyLimiter()];
    const run = (each: LatencyLimiter, failures: number): number => {
      const limits: number[] = [];
      let now = end(each, 'a'.repeat(64), 0, 8);
      for (let i = 0; i < 32; i += 1) {
        for (let k = 0; k < failures; k += 1) each.onTimeout(1, 8, now, false);
        now = end(each, 'at', now, 8);
      }
      for (let i = 0; i < 32; i += 1) {
        for (let k = 0; k < failures; k += 1) each.onTimeout(1, 2, now, false);
        now = end(each, 'a', now, 2);
        limits.push(each.limit);
      }
      return limits.reduce((sum, limit) => sum + limit, 0);
    };
    expect(run(other, 3)).toBe(run(limiter, 0));
  });

  test('lets one request at a time pass while all are abandoned, and no more, however long that lasts', () => {
    const limiter = new LatencyLimiter();
    let now = end(limiter, 'a'.repeat(64), 0, 40);
    for (let i = 0; i < 60; i += 1) limiter.onTimeout(2000, 40, (now += 20), false, true);
    expect(limiter.limit).toBe(1);
    for (let i = 0; i < 100; i += 1) limiter.advance(1, (now += 1000));
    expect(limiter.limit).toBe(1);
    // Once requests are answered again, it learns from them.
    for (let i = 0; i < 200; i += 1) limiter.onAnswer(400, limiter.limit, (now += 50), false);
    expect(limiter.limit).toBeGreaterThan(1);
  });

  test('is not limited by a client that abandons its requests before a usual answer', () => {
    const limiter = new LatencyLimiter();
    let now = end(limiter, 'a'.repeat(64), 0, 8);
    for (let i = 0; i < 200; i += 1) limiter.onTimeout(500, 8, (now += 20), false, true);
    expect(limiter.limit).toBe(Number.POSITIVE_INFINITY);
  });

  test('tests for none if fewer than three requests are in flight', () => {
    const limiter = new LatencyLimiter();
    const now = end(limiter, 'a'.repeat(64), 0, 2);
    end(limiter, 'at'.repeat(16), now, 2);
    expect(limiter.limit).toBe(Number.POSITIVE_INFINITY);
  });
});
