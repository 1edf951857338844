/** One client with responses that last for minutes, beside others, at an upstream that limits requests in flight. */
import { describe, expect, test } from 'vitest';
import type { CallRecord } from '../../support/core/call-record.ts';
import { isSuccess } from '../../support/core/call-record.ts';
import { response } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';
import type { Millis } from '../../../src/core/scalars.ts';

const LONG: Millis = 600_000;

/** An upstream that accepts so many in flight. It sends a response to `streams` for ten minutes, and to others after 50 ms. */
function worldOf(places: number, seed: number): World & { rejected: number } {
  const world = Object.assign(new World({ seed }), { rejected: 0 });
  let inFlight = 0;
  world.respond = ({ client }) => {
    if (inFlight >= places) {
      world.rejected += 1;
      return { outcome: response(429), after: 1 };
    }
    const after = client === 'streams' ? 500 : 50;
    inFlight += 1;
    world.at(world.now + after + (client === 'streams' ? LONG : 0), () => (inFlight -= 1));
    return { outcome: response(200), after };
  };
  return world;
}

/** Keeps asking for so many streams. Returns those that have begun. */
function askForStreams(world: World, count: number): CallRecord[] {
  const begun: CallRecord[] = [];
  const ask = (): void => {
    const onVerdict = (record: CallRecord): unknown => {
      if (isSuccess(record)) return begun.push(record);
      return world.at(world.now + 300, ask);
    };
    world.call({ client: 'streams', download: LONG, onVerdict });
  };
  for (let i = 0; i < count; i += 1) ask();
  return begun;
}

/** Four requests a second of each of five clients. Returns how long each took; Infinity if it was refused. */
function askOften(world: World, from: Millis, until: Millis): Millis[] {
  const durations: Millis[] = [];
  for (let i = 0; i < 5; i += 1) {
    for (let at = from + 50 * i; at < until; at += 250) {
      const onVerdict = (record: CallRecord): unknown =>
        durations.push(isSuccess(record) ? world.now - at : Number.POSITIVE_INFINITY);
      world.at(at, () => world.call({ client: `other ${i}`, onVerdict }));
    }
  }
  return durations;
}

describe.each([10, 20])('at a known limit of %i in flight', (places) => {
  test.each([1, 2, 3])('a client that asks for 60 long responses leaves the others their places (seed %i)', (seed) => {
    const world = worldOf(places, seed);
    world.limit.meter.resume?.(100, 100, 0, places);
    askOften(world, 0, 10_000);
    world.runUntil(10_500);
    const streams = askForStreams(world, 60);
    world.runUntil(12_000);
    const durations = askOften(world, 12_000, 42_000);
    world.runUntil(43_000);
    expect(durations).toHaveLength(600);
    expect(durations.filter((each) => each > 200).length).toBeLessThan(6);
    expect(streams.length).toBeGreaterThan(places / 2);
    expect(world.limit.meter.concurrencyLimit).toBeGreaterThanOrEqual(places - 1);
    expect(world.rejected).toBeLessThan(10);
  });

  test('one whose long responses hold all places is not rejected again and again', () => {
    const world = worldOf(places, 1);
    world.limit.meter.resume?.(100, 100, 0, places);
    const streams = askForStreams(world, 60);
    world.runUntil(120_000);
    expect([streams.length, world.limit.meter.concurrencyLimit]).toEqual([places, places]);
    expect(world.rejected).toBeLessThanOrEqual(1);
  });
});
