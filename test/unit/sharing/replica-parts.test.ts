/** The small parts of shared limits, through their public methods. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { UsageHandler } from '../../../src/sharing/protocol/usage-replay.ts';
import type { EncodedUsage } from '../../../src/sharing/protocol/usage-entries.ts';
import { UsageLog } from '../../../src/sharing/protocol/usage-log.ts';
import { replayUsage } from '../../../src/sharing/protocol/usage-replay.ts';
import { shiftTimes } from '../../../src/sharing/protocol/usage-entries.ts';
import type { WeightAccount } from '../../../src/sharing/replicas/active-weight.ts';
import { ActiveWeight } from '../../../src/sharing/replicas/active-weight.ts';
import { InFlightHistory } from '../../../src/sharing/replicas/in-flight-history.ts';
import { BackendClock } from '../../../src/sharing/replicas/backend-clock.ts';

describe('the clock of a backend', () => {
  test('has the precision of its fastest response', () => {
    const clock = new BackendClock();
    clock.addSample(100, 140, 5130); // 30 to the backend, 10 back
    expect(clock.offset).toBe(5010);
    clock.addSample(200, 204, 5203);
    expect(clock.offset).toBe(5001);
    clock.addSample(300, 380, 5310);
    expect(clock.offset).toBe(5001);
  });

  test('is measured again after it was set, and regularly, because clocks drift', () => {
    const clock = new BackendClock();
    clock.addSample(0, 2, 5001);
    clock.addSample(100, 140, 3_605_120);
    expect(clock.offset).toBe(3_605_000);
    clock.addSample(20_000, 20_100, 3_625_052);
    expect(clock.offset).toBe(3_605_002);
  });

  test('is not changed by a response that a delay makes imprecise', () => {
    const clock = new BackendClock();
    clock.addSample(0, 2, 5001);
    clock.addSample(100, 3100, 8095); // all of its delay is on the way to the backend
    clock.addSample(100, 3100, 5105); // all of it is on the way back
    expect(clock.offset).toBe(5000);
    clock.addSample(3200, 3204, 3_608_202);
    expect(clock.offset).toBe(3_605_000);
  });

  test('gives the duration of a call as the mean of the last calls', () => {
    const clock = new BackendClock();
    clock.addSample(0, 8, 0);
    expect(clock.roundTrip).toBe(8);
    clock.addSample(100, 116, 108);
    expect(clock.roundTrip).toBe(9);
  });
});

describe('the weight of all replicas', () => {
  const account = (): WeightAccount => ({ window: 0, weightInWindow: 0, weightBefore: 0 });

  test('counts each replica once, with its last report', () => {
    const census = new ActiveWeight();
    const [a, b] = [account(), account()];
    census.record(a, 2, 0, 100);
    census.record(b, 3, 10, 100);
    census.record(a, 1, 20, 100);
    expect(census.total).toBe(4);
    census.record(b, 0, 30, 100);
    expect(census.total).toBe(1);
  });

  test('does not count an earlier, larger weight of a replica as that of another', () => {
    const census = new ActiveWeight();
    const [a, b] = [account(), account()];
    census.record(a, 5, 0, 100);
    census.record(a, 2, 110, 100);
    expect(census.excluding(a)).toBe(0);
    census.record(b, 3, 120, 100);
    expect(census.excluding(a)).toBe(3);
    expect(census.excluding(b)).toBe(5);
    census.record(a, 1, 230, 100);
    expect(census.excluding(a)).toBe(3); // b may still arrive
  });

  test('excludes a replica that stopped reporting', () => {
    const census = new ActiveWeight();
    const [a, b] = [account(), account()];
    census.record(a, 2, 0, 100);
    census.record(b, 3, 10, 100);
    census.record(a, 2, 110, 100);
    expect(census.total).toBe(5); // b may still arrive
    census.record(a, 2, 220, 100);
    expect(census.total).toBe(2);
    census.record(a, 2, 1000, 100);
    expect(census.total).toBe(2);
  });
});

test('the number in flight at a moment is exact when all have reported, in whatever order', () => {
  const requests = fc.array(fc.tuple(fc.integer({ min: 0, max: 290 }), fc.integer({ min: 1, max: 290 })), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(requests, fc.integer({ min: 0, max: 59 }), fc.nat(), (spans, bucket, seed) => {
      const changes = spans.flatMap(([from, took]) => [[from, 1] as const, [from + took, -1] as const]);
      const shuffled = changes.toSorted((a, b) => ((a[0] * 7919 + seed) % 101) - ((b[0] * 7919 + seed) % 101));
      const history = new InFlightHistory();
      history.record(310, 0); // reported that late
      for (const [at, change] of shuffled) if (at <= 310) history.record(at, change);
      const now = changes.filter(([at]) => at <= 310).reduce((sum, [, change]) => sum + change, 0);
      const end = 5 * bucket + 4.999;
      const then = changes.filter(([at]) => at <= end).reduce((sum, [, change]) => sum + change, 0);
      expect(history.inFlightAt(5 * bucket, now)).toBe(Math.max(1, then));
    }),
  );
});

test('the number in flight long ago is unknown, and a little earlier is approximate', () => {
  const history = new InFlightHistory();
  history.record(0, 1);
  history.record(4000, 1);
  expect(history.inFlightAt(3000, 2)).toBe(1);
  expect(history.inFlightAt(4000, 2)).toBe(2);
  history.record(20_000, 1);
  expect(history.inFlightAt(4000, 3)).toBeUndefined();
});

test('a change of the clock shifts all times and nothing else', () => {
  const log = (by: number): EncodedUsage => {
    const written = new UsageLog();
    written.epochSeen(3);
    written.sent(7, 10 + by);
    written.tokenReturned();
    written.ended(11 + by);
    written.accepted(10 + by, 7, 12 + by);
    written.rejected(
      { sentAt: 10 + by, inFlightAtSend: 5, retryAfterMs: 20, activeClients: 2, overrun: true },
      13 + by,
    );
    written.failed({ sentAt: 10 + by, retryAfterMs: 30 }, 14 + by);
    written.abandoned(10 + by, 14 + by);
    written.quota({ remaining: 1, limit: 2, resetIn: 3, window: 4 }, 10 + by, 15 + by);
    written.stopped(16 + by);
    written.rateRemembered(5, 17 + by);
    written.tokenUnused(18 + by);
    written.probeAbandoned();
    return written.take();
  };
  const shifted = shiftTimes(log(0), 1000);
  expect(shifted).toEqual(log(1000));
  const kinds: string[] = [];
  const reader = new Proxy({} as UsageHandler, { get: (_, kind) => () => kinds.push(String(kind)) });
  replayUsage(shifted, reader);
  expect(kinds).toHaveLength(13);
});

test.each([
  [false, false],
  [true, false],
  [false, true],
  [true, true],
])('a failure is decoded as it was encoded: overrun %s, unreachable %s', (overrun, isUnreachable) => {
  const written = new UsageLog();
  written.failed({ sentAt: 10, retryAfterMs: undefined, overrun, isUnreachable }, 14);
  const read: unknown[] = [];
  const reader = new Proxy({} as UsageHandler, { get: () => (failure: unknown, at: number) => read.push(failure, at) });
  replayUsage(written.take(), reader);
  expect(read).toEqual([{ sentAt: 10, retryAfterMs: undefined, overrun, isUnreachable, attributes: undefined }, 14]);
});

test('a log grows with the number of events, and uses no memory while idle', () => {
  const written = new UsageLog();
  for (const length of [0, 1, 1000, 20_000, 3]) {
    for (let each = 0; each < length; each += 1) written.sent(each, 2 * each);
    const read: number[][] = [];
    const reader = new Proxy({} as UsageHandler, {
      get: () => (serial: number, at: number) => read.push([serial, at]),
    });
    replayUsage(written.take(), reader);
    expect(read).toEqual(Array.from({ length }, (_, each) => [each, 2 * each]));
    expect(written.isEmpty).toBe(true);
  }
});
