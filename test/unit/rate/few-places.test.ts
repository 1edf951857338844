import { describe, expect, test } from 'vitest';
import { ConcurrencyLimit } from '../../../src/core/rate/concurrency-limit.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { rateState } from '../../support/core/rate-builders.ts';

const SETTINGS = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };

/** Decides at a send whether the upstream accepts it. */
type Upstream = (now: Millis, inFlight: number) => boolean;

/** A token bucket of size 1. */
function bucket(perSecond: number): Upstream {
  let nextAt = 0;
  return (now) => {
    if (now < nextAt) return false;
    nextAt = now + 1000 / perSecond;
    return true;
  };
}

/** Runs a meter that has found a limit of so many in flight, always with requests waiting. Returns what was accepted and rejected. */
function runBusy(meter: LocalMeter, upstream: Upstream, takes: Millis, [from, until]: readonly [Millis, Millis]) {
  const inFlight: { readonly sentAt: Millis; readonly among: number; readonly endsAt: Millis }[] = [];
  const counts = { accepted: 0, rejected: 0 };
  for (let now = from; now < until; now += 1) {
    for (let first = inFlight[0]; first !== undefined && first.endsAt <= now; first = inFlight[0]) {
      const { sentAt, among } = first;
      inFlight.shift();
      meter.onAccepted(sentAt, among, now);
      meter.onResponse();
      meter.onEnded(now);
      counts.accepted += 1;
    }
    meter.advance(now, true);
    for (let i = 0; i < 5 && meter.delay(now) === 0; i += 1) {
      meter.take(now, now);
      meter.release();
      const among = meter.onSent(now);
      if (upstream(now, among)) {
        inFlight.push({ sentAt: now, among, endsAt: now + takes });
        continue;
      }
      counts.rejected += 1;
      meter.onRejected({ sentAt: now, inFlightAtSend: among, retryAfterMs: undefined, activeClients: 1 }, now);
      meter.onResponse();
      meter.onEnded(now);
    }
  }
  return counts;
}

function meterOf(places: number): LocalMeter {
  const meter = new LocalMeter(SETTINGS, () => 0.5);
  meter.resume(40, 40, 0, places);
  return meter;
}

describe('a limit of one request in flight', () => {
  test.each([20, 50])('is soon refuted at a bucket of 100 a second whose requests take %i ms', (takes) => {
    const meter = meterOf(1);
    const upstream = bucket(100);
    runBusy(meter, upstream, takes, [0, 20_000]);
    expect(meter.concurrencyLimit).toBeUndefined();
    const { accepted, rejected } = runBusy(meter, upstream, takes, [20_000, 40_000]);
    expect(accepted).toBeGreaterThan(0.9 * 2000);
    expect(rejected).toBeLessThan(0.01 * accepted);
  });

  test.each([1, 2, 3])('stays if it is one: %i', (places) => {
    const meter = meterOf(places);
    const { accepted, rejected } = runBusy(meter, (_, inFlight) => inFlight <= places, 50, [0, 120_000]);
    expect(Math.abs((meter.concurrencyLimit ?? 0) - places)).toBeLessThanOrEqual(1);
    expect(accepted).toBeGreaterThan(0.9 * places * 20 * 120);
    expect(rejected).toBeLessThan(0.01 * accepted);
  });
});

describe('a limit on few requests in flight', () => {
  /** A limit that has grown by one, after requests of 100 ms. */
  function grown(size: number): ConcurrencyLimit {
    const limit = new ConcurrencyLimit(size, 0);
    for (let i = 0; i < 200; i += 1) {
      limit.onSend(0, 100 * i);
      limit.onEnded(1, 100 * i + 100);
    }
    limit.onSend(size - 1, 20_000);
    limit.onAccepted(size);
    limit.grow(20_000, rateState({ rate: 130, usualProbeLoss: 1 }));
    expect(limit.size).toBe(size + 1);
    return limit;
  }

  test('spaces requests only beyond what was detected', () => {
    expect(new ConcurrencyLimit(1, 0).pace).toBe(Number.POSITIVE_INFINITY);
    const limit = grown(1);
    expect(limit.pace).toBeCloseTo(15, 6); // one and a half a round trip
    limit.onRejected(20_001);
    expect(limit.pace).toBe(Number.POSITIVE_INFINITY);
    expect(grown(3).pace).toBeCloseTo(35, 6);
    expect(grown(4).pace).toBe(Number.POSITIVE_INFINITY);
  });

  test('is exceeded after eight acceptances in a row with more in flight', () => {
    const limit = grown(2);
    for (let i = 0; i < 100; i += 1) limit.onAccepted(2);
    for (let i = 0; i < 7; i += 1) limit.onAccepted(3);
    expect(limit.isExceeded).toBe(false);
    limit.onRejected(20_001);
    for (let i = 0; i < 7; i += 1) limit.onAccepted(3);
    expect(limit.isExceeded).toBe(false);
    limit.onAccepted(0);
    expect(limit.isExceeded).toBe(false);
    limit.onAccepted(3);
    expect(limit.isExceeded).toBe(true);
  });

  test('is never exceeded if it is on more than three', () => {
    const limit = grown(4);
    for (let i = 0; i < 100; i += 1) limit.onAccepted(5);
    expect(limit.isExceeded).toBe(false);
  });
});
