import { describe, expect, test } from 'vitest';
import type { QueueSettings } from '../../src/policy/admission.ts';
import type { Arrival, Standing } from '../support/policy.ts';
import { limitedTo, response, World } from '../support/policy.ts';

/** U(…) in the middle, and every whole second of a Retry-After rounded down. */
const MIDDLE = () => 0.5;

const ADMITTED = { kind: 'admitted' };

function refusal(why: string, retryAfter?: number): unknown {
  const told: unknown = retryAfter === undefined ? expect.any(Number) : expect.closeTo(retryAfter, 6);
  return { kind: 'refused', why, retryAfter: told };
}

/** A limit of 10 a second: after the first request, one at 90 ms, 190 ms, 290 ms, … */
function tenASecond(queue: Partial<QueueSettings> = {}): World {
  const upstream = { ...limitedTo(10), queue: { maxWait: 1000, maxDepth: 10_000, ...queue } };
  return new World({ upstream, random: MIDDLE });
}

function hintsOf(standings: readonly Standing[]): number[] {
  return standings.flatMap(({ told }) => (told?.kind === 'refused' ? [told.retryAfter] : []));
}

function arriveTimes(world: World, count: number, arrival: Arrival = {}): Standing[] {
  return Array.from({ length: count }, () => world.arrive(arrival));
}

describe('arriving', () => {
  test('while no limit is felt, all pass at once', () => {
    const world = new World();
    expect(arriveTimes(world, 1000).every(({ told }) => told?.kind === 'admitted')).toBe(true);
    expect(world.gate.nextWake()).toBeUndefined();
    expect(world.ofType('decision')[0]).toEqual({
      type: 'decision',
      upstream: 'up',
      decision: 'passed',
      why: undefined,
    });
  });

  test('what the rate allows passes at once, the next ones when their time has come', () => {
    const world = tenASecond();
    const [first, ...others] = arriveTimes(world, 4);
    expect(first?.told).toEqual(ADMITTED);
    expect(others.map(({ told }) => told)).toEqual([undefined, undefined, undefined]);
    expect(world.gate.nextWake()).toBe(90);
    world.runUntil(1000);
    expect(others.map(({ at, told }) => [at, told])).toEqual([90, 190, 290].map((at) => [at, ADMITTED]));
    expect(world.gate.nextWake()).toBeUndefined();
    expect(world.ofType('dequeued').map(({ waited, admitted }) => [waited, admitted])).toEqual([
      [90, true],
      [190, true],
      [290, true],
    ]);
  });

  test('nobody passes those who wait, though a token is free', () => {
    const world = tenASecond();
    const [, waiting] = arriveTimes(world, 2);
    world.now = 95; // its token has come, and the wake has not
    const late = world.arrive();
    expect([waiting?.told, late.told]).toEqual([undefined, undefined]);
    world.runUntil(300);
    expect([waiting?.told, late.told]).toEqual([ADMITTED, ADMITTED]);
  });

  test('an early wake does no harm', () => {
    const world = tenASecond();
    const [, waiting] = arriveTimes(world, 2);
    world.gate.wake(50);
    expect(waiting?.told).toBeUndefined();
    expect(world.gate.nextWake()).toBe(90);
  });
});

describe('more than the rate can serve in time', () => {
  test('is refused at once, when the wait would be longer than a client is kept', () => {
    const world = tenASecond();
    const standings = arriveTimes(world, 12);
    // The gate's 90 ms and 100 ms for each before it: 990 ms for the tenth in the queue, 1090 for the next.
    expect(standings.slice(1, 11).map(({ told }) => told)).toEqual(Array.from({ length: 10 }));
    expect(standings[11]?.told).toEqual(refusal('over_share', 1190));
    expect(world.ofType('decision').at(-1)).toMatchObject({ decision: 'refused', why: 'over_share' });
    world.runUntil(2000);
    expect(standings.slice(1, 11).map(({ at }) => Math.round(at))).toEqual(
      Array.from({ length: 10 }, (_, i) => 90 + 100 * i),
    );
  });

  test('counts turns at the share of the rate: among five who wait, five times as long', () => {
    const world = tenASecond();
    for (const client of ['a', 'a', 'b', 'c', 'd', 'e']) world.arrive({ client });
    // a has one waiting: (1 + 1) · 5 − 1 = 9 turns, 990 ms; then (2 + 1) · 5 − 1.
    expect(world.arrive({ client: 'a' }).told).toBeUndefined();
    expect(world.arrive({ client: 'a' }).told).toEqual(refusal('over_share'));
    // A newcomer: 1 · 6 − 1 turns.
    expect(world.arrive({ client: 'f' }).told).toBeUndefined();
  });

  test('a heavier client is kept for less long, so more of it waits', () => {
    const world = tenASecond();
    for (const client of ['a', 'b', 'b']) world.arrive({ client });
    const heavy = Array.from({ length: 20 }, () => world.arrive({ client: 'heavy', weight: 4 }));
    // (n + 1) · 5/4 − 1 turns of 100 ms, and 90 ms: at most 1000 for n up to 7.
    expect(heavy.filter(({ told }) => told === undefined)).toHaveLength(8);
  });

  test('a client that has been queued for over a second waits 0.3 of that at most', () => {
    const world = tenASecond();
    arriveTimes(world, 8); // seven wait
    for (let now = 95; now < 1095; now += 100) {
      world.runUntil(now);
      expect(world.arrive().told).toBeUndefined(); // one has just left
    }
    world.runUntil(1000);
    expect(world.arrive().told).toBeUndefined(); // 8 turns
    world.runUntil(1001);
    expect(world.arrive().told).toEqual(refusal('over_share'));
    expect(world.arrive({ client: 'newcomer' }).told).toBeUndefined();
  });

  test('its deadline is kept in mind too', () => {
    const world = tenASecond();
    arriveTimes(world, 4);
    expect(world.arrive({ deadline: 389 }).told).toEqual(refusal('over_share'));
    expect(world.arrive({ deadline: 391 }).told).toBeUndefined();
  });

  test('a full queue is full for everyone', () => {
    const world = tenASecond({ maxWait: 10_000, maxDepth: 3 });
    arriveTimes(world, 4);
    expect(world.arrive({ client: 'other' }).told).toEqual(refusal('queue_full'));
    expect(world.limit.queue.size).toBe(3);
    world.runUntil(90);
    expect(world.arrive({ client: 'other' }).told).toBeUndefined();
  });
});

describe('when to come back', () => {
  test('is a slot of its own: the refused come back at the rate, not all at once', () => {
    const world = tenASecond();
    arriveTimes(world, 11);
    const hints = ['a', 'b', 'c', 'd'].map(() => world.arrive().told);
    expect(hints).toEqual([1190, 1290, 1390, 1490].map((retryAfter) => refusal('over_share', retryAfter)));
    world.runUntil(400);
    // Four have been served since, and the next slot is the fifth.
    expect(arriveTimes(world, 4).map(({ told }) => told)).toEqual(Array.from({ length: 4 }));
    expect(world.arrive().told).toEqual(refusal('over_share', 1590 - 400));
  });

  test('is 30 s at most', () => {
    const world = tenASecond();
    const standings = Array.from({ length: 2000 }, (_, i) => world.arrive({ client: String(i % 1000) }));
    expect(Math.max(...hintsOf(standings))).toBe(30_000);
  });

  test('one that floods is told its own turn, and pushes nobody else away', () => {
    const world = tenASecond();
    for (let now = 0; now < 10_000; now += 10) {
      world.runUntil(now);
      world.arrive({ client: 'flood' });
    }
    expect(hintsOf(arriveTimes(world, 10, { client: 'flood' })).at(-1)).toBe(30_000);
    const modest = hintsOf(arriveTimes(world, 15, { client: 'modest' }));
    expect(modest.length).toBeGreaterThan(3);
    for (const hint of modest) expect(hint).toBeLessThan(3000);
  });

  test('a second late or early is in time, later is not', () => {
    const wait = (late: number) => {
      const world = tenASecond();
      const { ticket } = world.arrive({ client: 'b' });
      world.runUntil(100);
      world.store.clients.promise(ticket.slot!, 5000);
      world.runUntil(5000 + late);
      for (let i = 0; i < 12; i += 1) world.arrive({ client: `${i}` });
      return world.arrive({ client: 'b' }).told;
    };
    for (const late of [-1000, 0, 1000]) expect(wait(late)).toBeUndefined();
    for (const late of [-1001, 1001]) expect(wait(late)).toEqual(refusal('over_share'));
  });
});

describe('a client that the upstream asked to wait', () => {
  test('is refused until then, exactly, and told so in whole seconds, rounded up; others are not', () => {
    const world = new World({ random: MIDDLE });
    world.serve(world.arrive({ client: 'a' }), response(429, { retryAfter: 2000 }));
    world.now = 500;
    expect(world.arrive({ client: 'a' }).told).toEqual(refusal('held', 2000));
    expect(world.arrive({ client: 'b' }).told).toEqual(ADMITTED);
    world.now = 1999.5;
    expect(world.arrive({ client: 'a' }).told).toEqual(refusal('held', 1000));
    world.now = 2000;
    expect(world.arrive({ client: 'a' }).told?.kind).not.toBe('refused');
  });

  test('what of it was queued is refused when its turn comes', () => {
    const world = tenASecond();
    const out = world.arrive({ client: 'a' });
    world.send(out);
    const queued = world.arrive({ client: 'a' });
    const other = world.arrive({ client: 'b' });
    world.now = 50;
    world.answer(out, response(429, { retryAfter: 4000 }));
    world.runUntil(400);
    expect(queued.told).toEqual(refusal('held'));
    expect(queued.told?.kind === 'refused' && queued.at + queued.told.retryAfter).toBeGreaterThanOrEqual(4050);
    expect(other.told).toEqual(ADMITTED);
  });
});

describe('the queue', () => {
  test('drops what was not served in its time, with when to come back', () => {
    const world = tenASecond();
    arriveTimes(world, 9);
    const late = world.arrive({ deadline: 1000 });
    expect(late.told).toBeUndefined();
    // Others take its turns: a heavy client comes.
    for (let i = 0; i < 12; i += 1) world.arrive({ client: 'heavy', weight: 20 });
    world.runUntil(2000);
    expect(late.told).toEqual(refusal('queue_timeout'));
    expect(late.at).toBe(1000);
    expect(world.ofType('dequeued')).toContainEqual({
      type: 'dequeued',
      upstream: 'up',
      waited: 1000,
      admitted: false,
    });
  });

  test('gives up the place of one that goes', () => {
    const world = tenASecond();
    const [, first, second] = arriveTimes(world, 3);
    world.now = 40;
    world.gate.cancel(first!.ticket, 40);
    world.runUntil(1000);
    expect(first!.told).toBeUndefined();
    expect(second!.at).toBe(90);
    expect(world.ofType('dequeued')).toEqual([
      { type: 'dequeued', upstream: 'up', waited: 40, admitted: false },
      { type: 'dequeued', upstream: 'up', waited: 90, admitted: true },
    ]);
    expect(world.gate.nextWake()).toBeUndefined();
  });

  test('a cancel of what holds nothing does nothing', () => {
    const world = tenASecond();
    const standing = world.arrive();
    world.gate.cancel(standing.ticket, 0);
    world.serve(standing);
    world.gate.cancel(standing.ticket, 0);
    expect(world.ofType('dequeued')).toEqual([]);
    expect(world.limit.inFlight).toBe(0);
  });
});

describe('clients', () => {
  test('are kept while a ticket of theirs stands, and may be forgotten when it has left', () => {
    const world = new World({ maxTracked: 1 });
    const a = world.arrive({ client: 'a' });
    const b = world.arrive({ client: 'b' });
    expect(b.ticket.slot).not.toBe(a.ticket.slot);
    expect(world.gate.view(0).clients.tracked).toBe(1);
    world.gate.leave(a.ticket);
    world.gate.leave(a.ticket); // twice is once
    world.gate.leave(b.ticket);
    world.arrive({ client: 'c' });
    expect(world.ofType('client-evicted')).toHaveLength(1);
  });

  test('a retry is no new demand', () => {
    const world = new World();
    const standing = world.arrive();
    world.gate.arrive(standing.ticket, 10_000, 0);
    world.gate.arrive(standing.ticket, 10_000, 0);
    expect(world.store.clients.demand(standing.ticket.slot!, 0)).toBe(0.5);
  });
});

describe('the view', () => {
  test('tells limits, clients and budgets as they are', () => {
    const world = tenASecond();
    const [first] = arriveTimes(world, 3);
    world.send(first!);
    world.store.upstream('up').budget.spend();
    expect(world.gate.view(20)).toEqual({
      limits: [
        {
          upstream: 'up',
          scope: 'upstream',
          key: '',
          state: 'restoring',
          rate: 10,
          ceiling: 10,
          blockedUntil: undefined,
          quotaLeft: undefined,
          queued: 2,
          inFlight: 1,
        },
      ],
      clients: {
        tracked: 1,
        byState: { normal: 1, held: 0, backoff: 0, cooldown: 0, restoring: 0 },
        allowance: { min: 1, mean: 1 },
      },
      budgets: new Map([['up', 0.9]]),
    });
  });
});
