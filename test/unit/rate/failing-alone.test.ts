/** Senders of which nothing is accepted while others pass: their failures block only them. */
import { describe, expect, test } from 'vitest';
import type { Millis } from '../../../src/core/scalars.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { eight, from, Line } from '../../support/core/attributed-line.ts';
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

describe('an address that fails while others are accepted', () => {
  /** One failure of it is followed by an accepted request of another sender. */
  function passedOver(): Line {
    const line = new Line();
    fail(line, ['one']);
    line.ask('accepted', from({ address: 'other' }));
    return line;
  }

  test('is blocked alone for the part of its paths that its failures share', () => {
    const line = new Line();
    line.ask('failed', from({ address: 'one', path: '/x/1' }));
    line.ask('accepted', from({ address: 'other' }));
    for (const i of eight) line.ask('failed', from({ address: 'one', client: `key ${i}`, path: `/x/${i}` }));
    expect(line.part).toBe('address_path');
    expect(line.rate.delay(line.now, from({ address: 'one', path: '/y' }))).toBe(0);
  });

  test('is not blocked for less than half of all responses', () => {
    const line = passedOver();
    for (const i of eight) {
      line.ask('accepted', from({ address: `other ${i}` }));
      line.ask('accepted', from({ address: 'other' }));
      fail(line, ['one']);
    }
    expect(line.part).toBeUndefined();
  });

  test('counts with all others again once one of its own requests is accepted', () => {
    const line = passedOver();
    line.ask('accepted', from({ address: 'one' }));
    for (const i of eight) fail(line, [i % 3 === 0 ? 'one' : `new ${i}`]);
    expect([line.part, line.rate.phase]).toEqual(['upstream', 'blocked']);
  });

  test('counts with all others again ten seconds after its last failure', () => {
    const line = passedOver();
    line.now += 10_001;
    for (const i of eight) fail(line, [i % 3 === 0 ? 'one' : `new ${i}`]);
    expect([line.part, line.rate.phase]).toEqual(['upstream', 'blocked']);
  });

  test('has a block beside those of others, until a probe of its own is accepted', () => {
    const line = passedOver();
    fail(line, ['two']);
    line.ask('accepted', from({ address: 'other' }));
    for (const _ of eight) fail(line, ['one', 'two']);
    line.ask('accepted', from({ address: 'other' }));
    for (const _ of eight) fail(line, ['one', 'two']);
    const isHeld = (address: string): boolean => line.rate.breaker.isHeldBack(from({ address, path: '/new' }));
    expect([isHeld('one'), isHeld('two'), isHeld('other')]).toEqual([true, true, false]);
    line.now += 1000;
    expect(line.ask('accepted', from({ address: 'one' }))).toBe(true);
    expect([isHeld('one'), isHeld('two')]).toEqual([false, true]);
  });
});

test('a path that fails is blocked, although those who ask for it ask for nothing else', () => {
  const line = new Line();
  for (let i = 0; line.part === undefined && i < 100; i += 1) {
    line.ask('failed', from({ address: `a${i % 4}`, path: `/reports/${i}` }));
    line.ask('accepted', from({ address: `b${i % 4}`, path: `/charges/${i}` }));
  }
  expect([line.part, line.rate.breaker.isHeldBack(from({ address: 'b1', path: '/reports/1' }))]).toEqual([
    'path',
    true,
  ]);
});

test('a sender that failed in an outage is not blocked alone when the upstream fails again', () => {
  const line = new Line();
  const all = eight.map((i) => `a${i}`);
  fail(line, all);
  expect([line.part, line.rate.phase]).toEqual(['upstream', 'blocked']);
  line.now += 1000;
  expect(line.ask('accepted', from({ address: 'other' }))).toBe(true);
  expect(line.part).toBeUndefined();
  for (let i = 0; line.part === undefined && i < 200; i += 1, line.now += 20) fail(line, all.slice(0, 3));
  expect([line.part, line.rate.phase]).toEqual(['upstream', 'blocked']);
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
