/** Senders of which nothing is accepted while others pass: their failures block only them. Minutes of virtual time. */
import { describe, expect, test } from 'vitest';
import type { Millis } from '../../../src/core/scalars.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { from, Line } from '../../support/core/attributed-line.ts';
import type { CallRecord } from '../../support/core/call-record.ts';
import { isSuccess } from '../../support/core/call-record.ts';
import { response } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

/** Fails one request of each of these addresses at a path of its own. Returns how many were sent. */
function fail(line: Line, addresses: readonly string[], pathOf = (i: number) => `/${line.now}/${i}`): number {
  return addresses.filter((address, i) => line.ask('failed', from({ address, path: pathOf(i) }))).length;
}

test.each([
  [1, 'own paths'],
  [2, 'own paths'],
  [3, 'own paths'],
  [3, 'the path of all others'],
])('%i addresses whose requests for %s all fail do not delay others, and send hardly any', (count, paths) => {
  const isShared = paths !== 'own paths';
  const failing = Array.from({ length: count }, (_, i) => `failing ${i}`);
  const line = new Line();
  let sent = 0;
  for (let second = 0; second < 60; second += 1) {
    for (let i = 0; i < 10; i += 1) {
      const path = isShared ? '/charges' : `/${i}`;
      expect(line.ask('accepted', from({ address: `polite ${i}`, path }))).toBe(true);
      for (let j = 0; j < 2; j += 1) sent += fail(line, failing, isShared ? () => path : undefined);
      line.now += 60;
    }
  }
  expect(line.rate.rate).toBe(Number.POSITIVE_INFINITY);
  for (const address of failing) {
    expect(line.rate.breaker.isHeldBack(from({ address, path: isShared ? '/charges' : '/new' }))).toBe(true);
  }
  expect(sent).toBeLessThan(count * 40); // of count * 1200
});

describe.each([
  [3, 20],
  [12, 4],
  [40, 4],
])('while all requests of %i addresses get a 503, %i a second of each', (count, rate) => {
  test.each([1, 2, 3, 4])('ten others wait for moments of the first seconds only (seed %i)', (seed) => {
    const world = new World({ seed });
    const answer = (status: number) => ({ outcome: response(status), after: 20 });
    world.respond = ({ client }) => answer(client.startsWith('failing') ? 503 : 200);
    for (let i = 0; i < count; i += 1) world.stream(rate, 40_000, { client: `failing ${i}` });
    const durations: Millis[] = [];
    for (let i = 0; i < 10; i += 1) {
      for (let at: Millis = 100 * i; at < 40_000; at += 1000) {
        const onVerdict = (record: CallRecord): void => {
          if (at >= 20_000) durations.push(isSuccess(record) ? world.now - at : Number.POSITIVE_INFINITY);
        };
        world.at(at, () => world.call({ client: `polite ${i}`, onVerdict }));
      }
    }
    world.runUntil(41_000);
    expect([durations.length, Math.max(...durations)]).toEqual([200, 20]);
  });
});

test.each([2, 5, 20, 200])(
  'an outage of nine requests in ten of %i addresses is shed as one of all requests',
  (count) => {
    let sent = 0;
    for (let seed = 1; seed <= 10; seed += 1) {
      const random = seededRandom(seed);
      for (const line = new Line(); line.now < 11_000; line.now += 10) {
        const address = `a${Math.floor(random() * count)}`;
        if (line.ask(random() < 0.9 ? 'failed' : 'accepted', from({ address, path: `/${line.now}` }))) sent += 1;
      }
    }
    expect(sent).toBeLessThan(1200); // of about 10,000
  },
);
