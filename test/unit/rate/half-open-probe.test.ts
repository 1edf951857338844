import { describe, expect, test } from 'vitest';
import type { QueuedTicket } from '../../support/core/call-record.ts';
import { limitedBy } from '../../support/core/call-record.ts';
import { failure, response } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';
import { makeLimitModel } from '../../../src/simulator/limit-models/limit-model-spec.ts';

/** 100 a second served for ten seconds, then blocked by errors of eight clients; it is now 3000, and a probe is due. */
function blockedWorld(): World {
  const world = new World({ random: () => 0.5 });
  for (let now = -9000; now < 1000; now += 10) {
    world.now = now;
    world.serve(world.arrive({ client: 'before' }));
  }
  world.now = 2500; // the responses of the last two seconds count
  const requests = Array.from({ length: 8 }, (_, i) => world.arrive({ client: `before ${i}` }));
  for (const request of requests) world.send(request);
  for (const request of requests) world.answer(request, failure('reset', true));
  for (const { ticket } of requests) world.gate.onExchangeEnd(ticket);
  expect(world.limit.meter.phase).toBe('blocked');
  world.now = 3000; // the probe has been due since 2550
  return world;
}

const isOut = ({ admission }: QueuedTicket) => admission?.kind === 'admitted';

describe('while the upstream is blocked', () => {
  test('the next arrival is the probe if one is due and the queue is empty', () => {
    const world = blockedWorld();
    expect(world.gate.nextWake()).toBeUndefined();
    expect(isOut(world.arrive())).toBe(true);
    const next = world.arrive();
    expect(next.admission).toBeUndefined();
  });

  test('a request with an incomplete body is refused for a second, as another request may arrive', () => {
    const world = blockedWorld(); // due since 2550
    const early = world.arrive({ bodyInHand: false });
    expect(early.admission).toMatchObject({ kind: 'refused', why: 'blocked' });
    world.now = 3549;
    expect(world.arrive({ bodyInHand: false }).admission).toMatchObject({ kind: 'refused', why: 'blocked' });
    world.now = 3550;
    expect(isOut(world.arrive({ bodyInHand: false }))).toBe(true);
  });

  test('the first request of the queue becomes the probe when one is due', () => {
    const world = blockedWorld();
    world.serve(world.arrive(), failure('reset', true)); // the next is due 75 ms later
    const waiting = [world.arrive({ client: 'a' }), world.arrive({ client: 'b' })];
    expect(world.gate.nextWake()).toBe(3075);
    world.runUntil(3075);
    expect(waiting.map(isOut)).toEqual([true, false]);
    world.runUntil(3150);
    expect(waiting.map(isOut)).toEqual([true, false]);
  });

  test('an accepted probe releases the queue at the recovery rate', () => {
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

  test('a failed probe keeps the queue waiting, for half as long again', () => {
    const world = blockedWorld();
    const probe = world.arrive();
    world.send(probe);
    const waiting = world.arrive({ client: 'a' });
    world.now = 3080;
    world.answer(probe, response(503));
    world.runUntil(3154);
    expect(waiting.admission).toBeUndefined();
    world.runUntil(3155);
    expect(isOut(waiting)).toBe(true);
  });

  test.each(['cancelled before it was sent', 'aborted by its client'] as const)(
    'a probe that is %s is replaced by a waiting request',
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
      expect(third.admission).toBeUndefined();
      // The abandoned probe does not revive.
      world.gate.cancel(probe.ticket, 3030);
      world.runUntil(3040);
      expect(third.admission).toBeUndefined();
    },
  );

  test('a probe that is abandoned while the queue is empty is replaced by the next arrival', () => {
    const world = blockedWorld();
    world.gate.cancel(world.arrive().ticket, 3000);
    expect(isOut(world.arrive())).toBe(true);
  });

  test('a probe without a response is replaced after 2 s, and the later ones after up to 30 s', () => {
    const world = blockedWorld();
    for (const patience of [2000, 4000, 8000, 16_000, 30_000]) {
      const end = world.now + patience;
      world.send(world.arrive({ client: `without a response for ${patience} ms` }));
      world.runUntil(end - 500);
      const waiting = world.arrive({ client: `after ${patience} ms` });
      expect(waiting.admission).toBeUndefined();
      world.runUntil(end - 1);
      expect(waiting.admission).toBeUndefined();
      world.runUntil(end);
      expect(isOut(waiting)).toBe(true);
      world.gate.cancel(waiting.ticket, end); // the next one is sent in its place
    }
  });

  test('a slow probe is followed by a request of another path, before those of its own path', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'slow', path: '/poll/1' })); // without a response
    world.runUntil(4900);
    const similar = world.arrive({ client: 'a', path: '/poll/2' });
    const same = world.arrive({ client: 'b', path: '/poll/1' });
    const other = world.arrive({ client: 'c', path: '/charges' });
    world.runUntil(5000);
    expect([similar, same, other].map(isOut)).toEqual([false, false, true]);
    world.serve(other);
    expect(world.limit.meter.phase).toBe('restoring');
  });

  test('a slow probe is followed by a request of its own path if no other arrives', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'slow', path: '/poll/1' }));
    world.runUntil(6900);
    const same = world.arrive({ client: 'a', path: '/poll/1' });
    expect(same.admission).toBeUndefined();
    world.runUntil(7000);
    expect(isOut(same)).toBe(true);
  });

  test('requests of the path of a probe that was just sent wait for its response', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'a', path: '/charges' }));
    world.runUntil(3040);
    for (const client of ['b', 'c', 'd']) {
      expect(world.arrive({ client, path: '/charges' }).admission).toBeUndefined();
    }
  });

  test('clients that are refused during a slow probe, and return at the named time, are not refused again', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'slow', path: '/poll/1' }));
    const refused = Array.from({ length: 20 }, (_, i) => {
      world.runUntil(3000 + 90 * i);
      return world.arrive({ client: String(i), path: i % 2 === 0 ? '/charges' : `/poll/${i}` });
    });
    world.runUntil(4900);
    const again: QueuedTicket[] = [];
    for (const [i, { admission, at }] of refused.entries()) {
      if (admission?.kind !== 'refused') continue;
      world.at(at + 1000 * Math.round(admission.retryAfterMs / 1000), () => {
        const returned = world.arrive({ client: String(i), path: i % 2 === 0 ? '/charges' : `/poll/${i}` });
        again.push(returned);
      });
    }
    for (let now = 5000; now < 12_000; now += 10) {
      world.runUntil(now);
      for (const each of [...refused, ...again]) {
        if (isOut(each) && each.ticket.clientSlot !== undefined && each.at <= now - 5) world.serve(each);
      }
    }
    expect(again.length).toBeGreaterThan(5);
    expect(again.filter(({ admission }) => admission?.kind === 'refused')).toEqual([]);
  });

  test('a late response to a slow probe ends the block, even if another probe has failed since', () => {
    const world = blockedWorld();
    const slow = world.arrive({ client: 'slow', path: '/poll/1' });
    world.send(slow);
    world.runUntil(5000);
    world.serve(world.arrive({ client: 'a', path: '/charges' }), failure('reset', true));
    expect(world.limit.meter.phase).toBe('blocked');
    world.now = 5010;
    world.answer(slow, response(200));
    expect(world.limit.meter.phase).toBe('restoring');
  });

  test('a late failure of a slow probe leaves the probe after it in flight', () => {
    const world = blockedWorld();
    const slow = world.arrive({ client: 'slow', path: '/poll/1' });
    world.send(slow);
    world.runUntil(5000);
    world.send(world.arrive({ client: 'a', path: '/charges' }));
    world.runUntil(6000);
    world.answer(slow, failure('timeout', true));
    world.runUntil(8500);
    const next = world.arrive({ client: 'b', path: '/refunds' });
    world.runUntil(8999);
    expect(next.admission).toBeUndefined();
    world.runUntil(9000);
    expect(isOut(next)).toBe(true);
  });

  test('a rejection about one object counts as accepted, and ends the block', () => {
    const world = blockedWorld();
    world.serve(world.arrive(), response(429, { lock: true }));
    expect(world.limit.meter.phase).toBe('restoring');
  });

  test('a request that has waited for its maximum is refused with the time to the next probe', () => {
    const world = blockedWorld();
    world.send(world.arrive()); // without a response
    const waiting = world.arrive({ client: 'a' });
    world.runUntil(4500);
    expect(waiting.admission).toMatchObject({ kind: 'refused', why: 'blocked' });
    expect(waiting.at).toBe(4000);
  });

  test('a refusal while a probe is in flight does not name the latest possible probe', () => {
    const world = blockedWorld();
    for (let i = 0; i < 7; i += 1) {
      world.now += world.limit.meter.delay(world.now);
      world.serve(world.arrive({ client: `client ${i}` }), failure('timeout', true));
    }
    world.now += world.limit.meter.delay(world.now);
    world.send(world.arrive({ client: 'client 7' })); // seven have failed; if this one does, the next is sent after 50 · 1.5⁸ ms
    const refused = world.arrive({ client: 'a' }).admission;
    expect(refused).toMatchObject({ kind: 'refused', why: 'blocked' });
    expect(refused?.kind === 'refused' && refused.retryAfterMs).toBeGreaterThanOrEqual(1281);
    expect(refused?.kind === 'refused' && refused.retryAfterMs).toBeLessThan(1400);
  });

  test('a client refused for a later slot does not delay clients that are refused afterwards', () => {
    const world = blockedWorld();
    world.now += 1;
    const probe = world.arrive();
    world.send(probe);
    for (let i = 0; i < 50; i += 1) world.arrive({ client: String(i) });
    world.now += 60;
    world.answer(probe, response(200));
    world.runUntil(5000);
    const admissions = Array.from({ length: 100 }, (_, i) => world.arrive({ client: `late ${i}` }).admission);
    const hints = admissions.flatMap((each) => (each?.kind === 'refused' ? [each.retryAfterMs] : []));
    expect(hints.length).toBeGreaterThan(20);
    expect(Math.max(...hints)).toBeLessThan(4000); // 100 at 43 a second
  });
});

describe('an outage', () => {
  test('of ten seconds costs few requests, and later requests are served as before', () => {
    const world = new World({ seed: 3 });
    const model = makeLimitModel({ kind: 'token-bucket', rate: 80, burst: 20 });
    let duringOutage = 0;
    const serve = limitedBy(model, world, 20);
    world.respond = (send) => {
      if (world.now < 20_000 || world.now >= 30_000) return serve(send);
      duringOutage += 1;
      return { outcome: failure('connect', false), after: 1 };
    };
    const records = Array.from({ length: 10 }, (_, i) => world.stream(7, 45_000, { client: `client ${i}` }));
    const successes = (from: number, to: number) =>
      records.flat().filter(({ status, endedAt }) => status === 200 && endedAt >= from && endedAt < to).length;
    world.runUntil(46_000);
    expect(duringOutage).toBeLessThanOrEqual(130);
    expect(successes(15_000, 20_000)).toBeGreaterThan(330);
    expect(successes(30_000, 35_000)).toBeGreaterThan(150);
    expect(successes(35_000, 40_000)).toBeGreaterThan(330);
  });
});
