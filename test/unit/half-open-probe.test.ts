import { describe, expect, test } from 'vitest';
import type { Standing } from '../support/policy.ts';
import { failure, limitedBy, response, World } from '../support/policy.ts';
import { makeModel } from '../../src/simulator/limit-models/limit-model-spec.ts';

/** 100 a second served for ten seconds, then blocked by errors of eight clients; it is now 3000, and a probe is due. */
function blockedWorld(): World {
  const world = new World({ random: () => 0.5 });
  for (let now = -9000; now < 1000; now += 10) {
    world.now = now;
    world.serve(world.arrive({ client: 'before' }));
  }
  world.now = 2500; // the answers of the last two seconds count
  const standings = Array.from({ length: 8 }, (_, i) => world.arrive({ client: `before ${i}` }));
  for (const standing of standings) world.send(standing);
  for (const standing of standings) world.answer(standing, failure('reset', true));
  for (const { ticket } of standings) world.gate.leave(ticket);
  expect(world.limit.meter.phase).toBe('blocked');
  world.now = 3000; // the probe has been due since 2550
  return world;
}

const isOut = ({ told }: Standing) => told?.kind === 'admitted';

describe('when nothing gets through', () => {
  test('the next arrival is the probe, when one is due and nobody waits', () => {
    const world = blockedWorld();
    expect(world.gate.nextWake()).toBeUndefined();
    expect(isOut(world.arrive())).toBe(true);
    const next = world.arrive();
    expect(next.told).toBeUndefined();
  });

  test('one whose body its client still owes is refused, for two seconds at most: another may come', () => {
    const world = blockedWorld(); // due since 2550
    const early = world.arrive({ bodyInHand: false });
    expect(early.told).toMatchObject({ kind: 'refused', why: 'blocked' });
    world.now = 4549;
    expect(world.arrive({ bodyInHand: false }).told).toMatchObject({ kind: 'refused', why: 'blocked' });
    world.now = 4550;
    expect(isOut(world.arrive({ bodyInHand: false }))).toBe(true);
  });

  test('the first of the queue is the probe, when one comes due', () => {
    const world = blockedWorld();
    world.serve(world.arrive(), failure('reset', true)); // the next is due 75 ms later
    const waiting = [world.arrive({ client: 'a' }), world.arrive({ client: 'b' })];
    expect(world.gate.nextWake()).toBe(3075);
    world.runUntil(3075);
    expect(waiting.map(isOut)).toEqual([true, false]);
    world.runUntil(3150);
    expect(waiting.map(isOut)).toEqual([true, false]);
  });

  test('an accepted probe lets the queue go on at the rate it comes back to', () => {
    const world = blockedWorld();
    const probe = world.arrive();
    world.send(probe);
    const waiting = ['a', 'b', 'c'].map((client) => world.arrive({ client }));
    world.now = 3080;
    world.answer(probe, response(200));
    world.runUntil(3500);
    expect(waiting.every(isOut)).toBe(true);
    expect(world.limit.meter.phase).toBe('restoring');
    expect(waiting.map(({ at }) => at)[0]).toBeGreaterThanOrEqual(3080);
  });

  test('a probe that fails keeps the others waiting, for half as long again', () => {
    const world = blockedWorld();
    const probe = world.arrive();
    world.send(probe);
    const waiting = world.arrive({ client: 'a' });
    world.now = 3080;
    world.answer(probe, response(503));
    world.runUntil(3154);
    expect(waiting.told).toBeUndefined();
    world.runUntil(3155);
    expect(isOut(waiting)).toBe(true);
  });

  test.each(['cancelled before it was sent', 'aborted by its client'] as const)(
    'a probe that is %s is replaced by who waits',
    (how) => {
      const world = blockedWorld();
      const probe = world.arrive();
      const waiting = world.arrive({ client: 'a' });
      world.now = 3020;
      if (how === 'cancelled before it was sent') {
        world.gate.cancel(probe.ticket, 3020);
      } else {
        world.send(probe);
        world.answer(probe, failure('aborted', true));
      }
      world.rearm();
      expect(isOut(waiting)).toBe(true);
      expect(waiting.at).toBe(3020);
      const third = world.arrive({ client: 'b' });
      expect(third.told).toBeUndefined();
      // The one that was given up has no second life.
      world.gate.cancel(probe.ticket, 3030);
      world.runUntil(3040);
      expect(third.told).toBeUndefined();
    },
  );

  test('a probe that is given up when nobody waits is replaced by the next arrival', () => {
    const world = blockedWorld();
    world.gate.cancel(world.arrive().ticket, 3000);
    expect(isOut(world.arrive())).toBe(true);
  });

  test('a probe whose answer never comes is replaced after 30 s', () => {
    const world = blockedWorld();
    world.send(world.arrive());
    world.runUntil(32_500);
    const waiting = world.arrive();
    expect(waiting.told).toBeUndefined();
    world.runUntil(33_000);
    expect(isOut(waiting)).toBe(true);
  });

  test('an answer about one object only is an answer: the limit is open again', () => {
    const world = blockedWorld();
    world.serve(world.arrive(), response(429, { lock: true }));
    expect(world.limit.meter.phase).toBe('restoring');
  });

  test('who has waited long enough is told so, with the time to the next probe', () => {
    const world = blockedWorld();
    world.send(world.arrive()); // and no answer
    const waiting = world.arrive({ client: 'a' });
    world.runUntil(4500);
    expect(waiting.told).toMatchObject({ kind: 'refused', why: 'blocked' });
    expect(waiting.at).toBe(4000);
  });

  test('while a probe is out, nobody is told to stay away for as long as it could take at most', () => {
    const world = blockedWorld();
    for (let i = 0; i < 7; i += 1) {
      world.now += world.limit.meter.delay(world.now);
      world.serve(world.arrive({ client: `client ${i}` }), failure('timeout', true));
    }
    world.now += world.limit.meter.delay(world.now);
    world.send(world.arrive({ client: 'client 7' })); // seven have failed; if this one does, the next goes after 50 · 1.5⁸ ms
    const refused = world.arrive({ client: 'a' }).told;
    expect(refused).toMatchObject({ kind: 'refused', why: 'blocked' });
    expect(refused?.kind === 'refused' && refused.retryAfter).toBeGreaterThanOrEqual(1281);
    expect(refused?.kind === 'refused' && refused.retryAfter).toBeLessThan(1400);
  });

  test('who is refused for a moment of it does not push away who is refused later', () => {
    const world = blockedWorld();
    world.now += 1;
    const probe = world.arrive();
    world.send(probe);
    for (let i = 0; i < 50; i += 1) world.arrive({ client: String(i) });
    world.now += 60;
    world.answer(probe, response(200));
    world.runUntil(5000);
    const told = Array.from({ length: 100 }, (_, i) => world.arrive({ client: `late ${i}` }).told);
    const hints = told.flatMap((each) => (each?.kind === 'refused' ? [each.retryAfter] : []));
    expect(hints.length).toBeGreaterThan(20);
    expect(Math.max(...hints)).toBeLessThan(4000); // 100 at 43 a second
  });
});

describe('an outage', () => {
  test('of ten seconds costs few calls, and what follows is served as what came before', () => {
    const world = new World({ seed: 3 });
    const model = makeModel({ kind: 'token-bucket', rate: 80, burst: 20 });
    let duringOutage = 0;
    const serve = limitedBy(model, world, 20);
    world.respond = (send) => {
      if (world.now < 20_000 || world.now >= 30_000) return serve(send);
      duringOutage += 1;
      return { outcome: failure('connect', false), after: 1 };
    };
    const stories = Array.from({ length: 10 }, (_, i) => world.stream(7, 45_000, { client: `client ${i}` }));
    const successes = (from: number, to: number) =>
      stories.flat().filter(({ status, endedAt }) => status === 200 && endedAt >= from && endedAt < to).length;
    world.runUntil(46_000);
    expect(duringOutage).toBeLessThanOrEqual(130);
    expect(successes(15_000, 20_000)).toBeGreaterThan(330);
    expect(successes(30_000, 35_000)).toBeGreaterThan(150);
    expect(successes(35_000, 40_000)).toBeGreaterThan(330);
  });
});
