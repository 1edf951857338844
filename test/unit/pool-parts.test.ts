/** The small parts of a pool, each by what it says of itself. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Replayed } from '../../src/sharing/protocol/usage-replay.ts';
import type { Happenings } from '../../src/sharing/protocol/usage-entries.ts';
import { HappeningLog } from '../../src/sharing/protocol/usage-log.ts';
import { replay } from '../../src/sharing/protocol/usage-replay.ts';
import { shiftTimes } from '../../src/sharing/protocol/usage-entries.ts';
import { Census } from '../../src/sharing/replicas/active-weight.ts';
import { InFlightHistory } from '../../src/sharing/replicas/in-flight-history.ts';
import { PoolClock } from '../../src/sharing/replicas/backend-clock.ts';

describe('the clock of a pool', () => {
  test('is known as well as its quickest answer tells', () => {
    const clock = new PoolClock();
    clock.note(100, 140, 5130); // the way there took 30, the way back 10
    expect(clock.offset).toBe(5010);
    clock.note(200, 204, 5203);
    expect(clock.offset).toBe(5001);
    clock.note(300, 380, 5310);
    expect(clock.offset).toBe(5001);
  });

  test('is learned anew when it was set, and now and then, as clocks drift', () => {
    const clock = new PoolClock();
    clock.note(0, 2, 5001);
    clock.note(100, 140, 3_605_120);
    expect(clock.offset).toBe(3_605_000);
    clock.note(20_000, 20_100, 3_625_052);
    expect(clock.offset).toBe(3_605_002);
  });

  test('a call takes what the last few took', () => {
    const clock = new PoolClock();
    clock.note(0, 8, 0);
    expect(clock.roundTrip).toBe(8);
    clock.note(100, 116, 108);
    expect(clock.roundTrip).toBe(9);
  });
});

describe('a census', () => {
  const account = (): { span: number; counted: number; before: number } => ({ span: 0, counted: 0, before: 0 });

  test('counts each once, as it said last', () => {
    const census = new Census();
    const [a, b] = [account(), account()];
    census.note(a, 2, 0, 100);
    census.note(b, 3, 10, 100);
    census.note(a, 1, 20, 100);
    expect(census.weight).toBe(4);
    census.note(b, 0, 30, 100);
    expect(census.weight).toBe(1);
  });

  test('takes nobody for one of the others who weighed more a while ago', () => {
    const census = new Census();
    const [a, b] = [account(), account()];
    census.note(a, 5, 0, 100);
    census.note(a, 2, 110, 100);
    expect(census.othersThan(a)).toBe(0);
    census.note(b, 3, 120, 100);
    expect(census.othersThan(a)).toBe(3);
    expect(census.othersThan(b)).toBe(5);
    census.note(a, 1, 230, 100);
    expect(census.othersThan(a)).toBe(3); // b may still come
  });

  test('leaves out who is not heard any more', () => {
    const census = new Census();
    const [a, b] = [account(), account()];
    census.note(a, 2, 0, 100);
    census.note(b, 3, 10, 100);
    census.note(a, 2, 110, 100);
    expect(census.weight).toBe(5); // b may still come
    census.note(a, 2, 220, 100);
    expect(census.weight).toBe(2);
    census.note(a, 2, 1000, 100);
    expect(census.weight).toBe(2);
  });
});

test('how many were in flight at a moment is known when all have told, in whatever order', () => {
  const requests = fc.array(fc.tuple(fc.integer({ min: 0, max: 290 }), fc.integer({ min: 1, max: 290 })), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(requests, fc.integer({ min: 0, max: 59 }), fc.nat(), (spans, bucket, seed) => {
      const changes = spans.flatMap(([from, took]) => [[from, 1] as const, [from + took, -1] as const]);
      const told = changes.toSorted((a, b) => ((a[0] * 7919 + seed) % 101) - ((b[0] * 7919 + seed) % 101));
      const history = new InFlightHistory();
      history.note(310, 0); // it is that late
      for (const [at, change] of told) if (at <= 310) history.note(at, change);
      const now = changes.filter(([at]) => at <= 310).reduce((sum, [, change]) => sum + change, 0);
      const end = 5 * bucket + 4.999;
      const then = changes.filter(([at]) => at <= end).reduce((sum, [, change]) => sum + change, 0);
      expect(history.at(5 * bucket, now)).toBe(Math.max(1, then));
    }),
  );
});

test('what was in flight long ago is not known, and not long ago more roughly', () => {
  const history = new InFlightHistory();
  history.note(0, 1);
  history.note(4000, 1);
  expect(history.at(3000, 2)).toBe(1);
  expect(history.at(4000, 2)).toBe(2);
  history.note(20_000, 1);
  expect(history.at(4000, 3)).toBeUndefined();
});

test('of another clock, all times are moved and nothing else', () => {
  const log = (by: number): Happenings => {
    const written = new HappeningLog();
    written.epoch(3);
    written.sent(7, 10 + by);
    written.givenBack();
    written.ended(11 + by);
    written.accepted(10 + by, 7, 12 + by);
    written.rejected({ sentAt: 10 + by, among: 5, retryAfter: 20, activeClients: 2, overrun: true }, 13 + by);
    written.failed({ sentAt: 10 + by, retryAfter: 30 }, 14 + by);
    written.quota({ remaining: 1, limit: 2, resetIn: 3, window: 4 }, 10 + by, 15 + by);
    written.stop(16 + by);
    written.remember(5, 17 + by);
    written.unspent(18 + by);
    written.abandonProbe();
    return written.take();
  };
  const shifted = shiftTimes(log(0), 1000);
  expect(shifted).toEqual(log(1000));
  const kinds: string[] = [];
  const reader = new Proxy({} as Replayed, { get: (_, kind) => () => kinds.push(String(kind)) });
  replay(shifted, reader);
  expect(kinds).toHaveLength(12);
});

test('a log has room for as much as happens, and takes none while nothing does', () => {
  const written = new HappeningLog();
  for (const length of [0, 1, 1000, 20_000, 3]) {
    for (let each = 0; each < length; each += 1) written.sent(each, 2 * each);
    const read: number[][] = [];
    const reader = new Proxy({} as Replayed, { get: () => (serial: number, at: number) => read.push([serial, at]) });
    replay(written.take(), reader);
    expect(read).toEqual(Array.from({ length }, (_, each) => [each, 2 * each]));
    expect(written.isEmpty).toBe(true);
  }
});
