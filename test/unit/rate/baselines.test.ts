import { describe, expect, test } from 'vitest';
import { AwsMeter } from '../../bench/control/baselines/aws-cubic.ts';
import { AimdLimit, VegasLimit } from '../../bench/control/baselines/netflix.ts';
import { SreMeter } from '../../bench/control/baselines/sre.ts';

/** The benchmarks are compared with these baselines, which have to match their sources. */
describe('the adaptive mode of the AWS SDKs', () => {
  test('follows the test vector that the SDKs share', () => {
    const meter = new AwsMeter();
    const throttled = { inFlightAtSend: 0, retryAfterMs: undefined, activeClients: 1 };
    const rates: number[] = [];
    for (let step = 1; step <= 17; step += 1) {
      const now = 200 * step;
      if (now === 2000 || now === 3200) meter.onRejected({ ...throttled, sentAt: now }, now);
      else meter.onAccepted(now, 0, now);
      rates.push(meter.rate());
    }
    expect(rates.slice(0, 9)).toEqual(Array.from({ length: 9 }, () => Number.POSITIVE_INFINITY));
    const expectedRates = [3.02848, 3.486639, 3.821874, 4.053386, 4.200373, 4.282037, 2.997426, 3.452226];
    for (const [i, rate] of expectedRates.entries()) expect(rates[9 + i]).toBeCloseTo(rate, 6);
  });
});

describe("the throttling of Google's SRE book", () => {
  test('refuses with (requests − 2 · accepts) ÷ (requests + 1)', () => {
    let chance = 1;
    const meter = new SreMeter(() => chance);
    for (let i = 0; i < 99; i += 1) meter.delay(0);
    for (let i = 0; i < 25; i += 1) meter.onAccepted(0, 0, 0);
    chance = 0.491; // > (99 − 50) ÷ 100
    expect(meter.delay(0)).toBe(0);
    chance = 0.494; // < (100 − 50) ÷ 101
    expect(meter.delay(0)).toBe(Number.POSITIVE_INFINITY);
  });

  test('drops counts after two minutes', () => {
    const meter = new SreMeter(() => 0);
    for (let i = 0; i < 99; i += 1) meter.delay(0);
    expect(meter.delay(119_999)).toBe(Number.POSITIVE_INFINITY);
    expect(meter.delay(240_000)).toBe(0);
  });
});

describe("Netflix's concurrency limits", () => {
  test('AIMD gains a place while half are in use, and keeps 0.9 after a drop', () => {
    const limit = new AimdLimit();
    limit.update(50, 9, false);
    expect(limit.limit).toBe(20);
    limit.update(50, 10, false);
    expect(limit.limit).toBe(21);
    limit.update(50, 10, true);
    expect(limit.limit).toBe(18);
    limit.update(5001, 10, false);
    expect(limit.limit).toBe(16);
  });

  test.each([
    { rtt: 100, among: 20, didDrop: false, after: 26, why: 'no queue: β more' },
    { rtt: 110, among: 20, didDrop: false, after: 21, why: 'a queue below α: one more' },
    { rtt: 125, among: 20, didDrop: false, after: 20, why: 'a queue between α and β: the same' },
    { rtt: 200, among: 20, didDrop: false, after: 19, why: 'a queue above β: one less' },
    { rtt: 100, among: 20, didDrop: true, after: 19, why: 'a drop: one less' },
    { rtt: 100, among: 9, didDrop: false, after: 20, why: 'half are free: the same' },
  ])('Vegas: $why', ({ rtt, among, didDrop, after }) => {
    const limit = new VegasLimit(() => 0.5);
    limit.update(100, 20, false);
    limit.update(rtt, among, didDrop);
    expect(limit.limit).toBe(after);
  });
});
