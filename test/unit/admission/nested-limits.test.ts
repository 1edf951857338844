import { describe, expect, test } from 'vitest';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { RATE_RULES } from '../../../src/core/rate/rules.ts';
import type { PerSecond } from '../../../src/core/scalars.ts';
import type { QueuedTicket } from '../../support/core/call-record.ts';
import { failure, response, SHARED } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const INNER: LimitRef = { upstream: 'up', nested: 'inner', scope: 'credential', key: 'inner' };
const SIBLING: LimitRef = { upstream: 'up', nested: 'sibling', scope: 'credential', key: 'sibling' };
const BOTH = [SHARED, INNER];

const SETTINGS = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };

function meter(rate: PerSecond): LocalMeter {
  return new LocalMeter({ initialRate: rate, maxRate: rate, minRate: 0.1, cooldown: 1000 }, () => 0.5);
}

/** A shared limit with this rate, and two nested in it. */
function nested(outer: PerSecond, inner: PerSecond, sibling: PerSecond = inner): World {
  const meters = { '': meter(outer), inner: meter(inner), sibling: meter(sibling) };
  return new World({ meters, random: () => 0.5 });
}

const limitOf = (world: World, ref: LimitRef) => world.store.findLimit(ref)!;
const admittedAt = (requests: readonly QueuedTicket[]) =>
  requests.map(({ admission, at }) => (admission?.kind === 'admitted' ? Math.round(at) : admission?.kind));

describe('a request under two limits', () => {
  test.each([
    ['the outer', 10, 40],
    ['the inner', 40, 10],
  ])('takes a token of each, at the rate of %s limit, which is lower', (_, outer, inner) => {
    const world = nested(outer, inner);
    const requests = Array.from({ length: 4 }, () => world.arrive({ refs: BOTH }));
    world.runUntil(1000);
    expect(admittedAt(requests)).toEqual([0, 100, 200, 300]);
  });

  test('takes no token while it waits for one of them, so others may use the other limit', () => {
    const world = nested(40, 5);
    world.arrive({ refs: BOTH });
    const waiting = world.arrive({ refs: BOTH }); // the next token of the inner limit is due at 200
    const others = Array.from({ length: 7 }, () => world.arrive({ client: 'other' }));
    world.runUntil(1000);
    expect(waiting.at).toBe(200);
    // The outer has one every 25 ms; the nested request took that of 200.
    expect(admittedAt(others)).toEqual([25, 50, 75, 100, 125, 150, 175]);
  });

  test('is in flight at both until its response', () => {
    const world = nested(100, 100);
    const request = world.arrive({ refs: BOTH });
    world.send(request);
    expect([SHARED, INNER, SIBLING].map((ref) => limitOf(world, ref).meter.inFlight)).toEqual([1, 1, 0]);
    world.answer(request, response(200));
    expect([SHARED, INNER].map((ref) => limitOf(world, ref).meter.inFlight)).toEqual([0, 0]);
  });

  test('has its number in flight reported to the inner limit alone if that alone was rejected', () => {
    const reported: [string, number][] = [];
    const watching = (name: string): LocalMeter => {
      const watchPlaces = () => ({
        onAccepted: (among: number) => void reported.push([name, among]),
        onRejected: (among: number) => void reported.push([`${name} rejected`, among]),
        reset() {},
      });
      return new LocalMeter(SETTINGS, () => 0.5, { ...RATE_RULES, makeConcurrencyDetector: watchPlaces });
    };
    const world = new World({ meters: { '': watching('outer'), inner: watching('inner') } });
    const out = [[SHARED], BOTH, BOTH, BOTH].map((refs) => world.arrive({ refs }));
    for (const request of out) world.send(request);
    for (const [i, request] of out.entries()) world.answer(request, response(i === 3 ? 429 : 200));
    expect(reported).toEqual([
      ['outer', 1],
      ['inner', 1],
      ['inner', 2],
      ['inner rejected', 3],
    ]);
  });

  test('shares the rate of the outer limit with requests of sibling limits', () => {
    const world = nested(10, 100);
    const a = Array.from({ length: 5 }, () => world.arrive({ client: 'a', refs: BOTH }));
    const b = Array.from({ length: 5 }, () => world.arrive({ client: 'b', refs: [SHARED, SIBLING] }));
    world.runUntil(1000);
    const times = [...admittedAt(a), ...admittedAt(b)].toSorted((x, y) => Number(x) - Number(y));
    expect(times).toEqual([0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
  });

  test('shares the rate by weight, however small the weight of a client is', () => {
    const world = nested(100, 1000);
    const light = Array.from({ length: 20 }, () => world.arrive({ client: 'light', refs: BOTH }));
    const heavy = Array.from({ length: 80 }, () =>
      world.arrive({ client: 'heavy', weight: 4, refs: [SHARED, SIBLING] }),
    );
    world.runUntil(495);
    const served = (requests: readonly QueuedTicket[]): number =>
      requests.filter(({ admission }) => admission?.kind === 'admitted').length;
    expect([served(light), served(heavy)]).toEqual([10, 40]);
  });
});

describe('a 429', () => {
  test('cuts the innermost limit; for the others it counts as accepted', () => {
    const world = nested(100, 100);
    world.serve(world.arrive({ refs: BOTH }), response(429));
    expect(limitOf(world, INNER).meter.phase).toBe('backoff');
    expect(limitOf(world, INNER).meter.rate(0)).toBe(95);
    expect(limitOf(world, SHARED).meter.phase).toBe('restoring');
    expect(world.ofType('cut')).toEqual([
      { type: 'cut', upstream: 'up', limit: 'inner', scope: 'credential', cause: 'small', from: 100, to: 95 },
    ]);

    world.serve(world.arrive({ client: 'other' }), response(429));
    expect(limitOf(world, SHARED).meter.phase).toBe('backoff');
    world.now += 50;
    world.serve(world.arrive({ refs: BOTH }), response(429));
    expect(limitOf(world, SHARED).meter.phase).toBe('cooldown');
  });
});

describe('a refusal', () => {
  test('names the limit that has no token, including the outer one', () => {
    const world = nested(100, 100);
    limitOf(world, SHARED).meter.stop(5000);
    expect(world.arrive({ refs: BOTH }).admission).toMatchObject({ kind: 'refused', why: 'blocked' });
    limitOf(world, INNER).meter.stop(6000);
    world.now = 5000;
    expect(world.arrive({ refs: BOTH }).admission).toBeUndefined();
    world.now = 4000;
    expect(world.arrive({ refs: BOTH }).admission).toMatchObject({ kind: 'refused', why: 'blocked' });
  });

  test('is made if the wait for any of the limits is too long', () => {
    const world = nested(1, 100);
    world.arrive({ refs: BOTH });
    world.arrive({ refs: BOTH, client: 'waits' });
    expect(world.arrive({ refs: BOTH }).admission).toMatchObject({ kind: 'refused', why: 'over_share' });
  });
});

describe('while the upstream is blocked', () => {
  /** The outer limit and the inner are blocked, and a probe of the sibling is in flight. */
  function probing() {
    const world = nested(100, 100);
    for (let i = 0; i < 8; i += 1) {
      world.serve(world.arrive({ refs: BOTH }), failure('connect', false));
      world.now += 10;
    }
    expect(limitOf(world, SHARED).meter.phase).toBe('blocked');
    world.now += 100;
    const probe = world.arrive({ client: 'prober', refs: [SHARED, SIBLING] });
    expect(probe.admission).toEqual({ kind: 'admitted' });
    const waiting = world.arrive({ client: 'a', refs: BOTH });
    expect(waiting.admission).toBeUndefined();
    return { world, probe, waiting };
  }

  test('an accepted probe of one limit releases the requests that wait at another', () => {
    const { world, probe, waiting } = probing();
    world.send(probe);
    world.now += 30;
    world.answer(probe, response(200));
    world.runUntil(world.now + 500); // it recovers to 2.5 a second
    expect(waiting.admission).toEqual({ kind: 'admitted' });
  });

  test('an abandoned probe is replaced by a request that waits at another limit', () => {
    const { world, probe, waiting } = probing();
    world.now += 30;
    world.gate.cancel(probe.ticket, world.now);
    expect(waiting.admission).toEqual({ kind: 'admitted' });
  });

  test('a request that has left the queue leaves no state', () => {
    const { world, waiting } = probing();
    expect([...(limitOf(world, SHARED).nestedWithWaiters ?? [])]).toEqual([limitOf(world, INNER)]);
    world.gate.cancel(waiting.ticket, world.now);
    expect(limitOf(world, SHARED).nestedWithWaiters?.size).toBe(0);
  });
});
