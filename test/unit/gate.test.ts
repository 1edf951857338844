import { describe, expect, test } from 'vitest';
import type { QueueSettings } from '../../src/core/admission/wait-estimate.ts';
import { LocalMeter } from '../../src/core/limits/meter.ts';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { RULES } from '../../src/core/rate/rules.ts';
import type { Arrival, Standing, Story } from '../support/policy.ts';
import { Concurrency } from '../../src/simulator/limit-models/concurrency.ts';
import { limitedTo, response, SEND_ONCE, SHARED, World } from '../support/policy.ts';

/** U(…) in the middle, and every whole second of a Retry-After rounded down. */
const MIDDLE = () => 0.5;

const ADMITTED = { kind: 'admitted' };

function refusal(why: string, retryAfter?: number): unknown {
  const told: unknown = retryAfter === undefined ? expect.any(Number) : expect.closeTo(retryAfter, 6);
  return { kind: 'refused', why, retryAfter: told };
}

/** A limit of 10 a second: after the first request, one at 100 ms, 200 ms, 300 ms, … */
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
    expect(world.gate.nextWake()).toBe(100);
    world.runUntil(1000);
    expect(others.map(({ at, told }) => [at, told])).toEqual([100, 200, 300].map((at) => [at, ADMITTED]));
    expect(world.gate.nextWake()).toBeUndefined();
    expect(world.ofType('dequeued').map(({ waited, admitted }) => [waited, admitted])).toEqual([
      [100, true],
      [200, true],
      [300, true],
    ]);
  });

  test('nobody passes those who wait, though a token is free', () => {
    const world = tenASecond();
    const [, waiting] = arriveTimes(world, 2);
    world.now = 105; // its token has come, and the wake has not
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
    expect(world.gate.nextWake()).toBe(100);
  });
});

describe('a wake that is late', () => {
  /** A limit of 200 a second, one every 5 ms, and six who wait for it; woken when the test says. */
  function sixWaiting(): { world: World; admitted: () => number } {
    const world = new World({ upstream: limitedTo(200), random: MIDDLE });
    arriveTimes(world, 1);
    const waiting = arriveTimes(world, 6);
    expect(world.gate.nextWake()).toBe(5);
    return { world, admitted: () => waiting.filter(({ told }) => told?.kind === 'admitted').length };
  }

  test('by 7 ms sends what was due meanwhile, and no token is lost', () => {
    const { world, admitted } = sixWaiting();
    world.gate.wake(12); // of 5 and 10
    expect(admitted()).toBe(2);
    expect(world.gate.nextWake()).toBe(15);
  });

  test('by more than 10 ms makes up for 10 ms', () => {
    const { world, admitted } = sixWaiting();
    world.gate.wake(30); // as if due at 20: of 20, 25 and 30
    expect(admitted()).toBe(3);
    expect(world.gate.nextWake()).toBe(35);
  });

  test('makes up for no idleness: after an hour one goes, and the next an interval later', () => {
    const { world } = sixWaiting();
    world.runUntil(3_600_000);
    const [first, second] = arriveTimes(world, 2);
    expect([first?.told, second?.told]).toEqual([ADMITTED, undefined]);
    expect(world.gate.nextWake()).toBe(3_600_005);
  });

  test('at the very end of a wait is in time', () => {
    const world = tenASecond();
    arriveTimes(world, 3);
    const last = world.arrive({ deadline: 300 });
    world.runUntil(400);
    expect([last.told, last.at]).toEqual([ADMITTED, 300]);
  });
});

describe('places in flight', () => {
  const INNER: LimitRef = { upstream: 'up', nested: 'inner', scope: 'credential', key: 'inner' };
  const ONCE = { plan: { retry: SEND_ONCE } };

  /**
   * Three are sent at once, and each is answered after a second, but the third: it is rejected, and that is believed to be
   * for their number. So two places are left, and both are taken.
   */
  function twoPlaces(download = 0) {
    const rules = { ...RULES, watchPlaces: () => ({ accepted() {}, rejected: (among: number) => among, forget() {} }) };
    const settings = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };
    const meter = new LocalMeter(settings, MIDDLE, rules);
    const world = new World({
      meters: { '': meter, inner: new LocalMeter(settings, MIDDLE) },
      random: MIDDLE,
      upstream: { queue: { maxWait: 2000, maxDepth: 5 } },
    });
    world.respond = ({ client }) =>
      client === 'third' ? { outcome: response(429), after: 0 } : { outcome: response(200), after: 1000 };
    const out = ['first', 'second'].map((client) => world.call({ client, download, ...ONCE }));
    world.call({ client: 'third', ...ONCE });
    world.runUntil(20);
    expect(world.ofType('cut').map(({ cause }) => cause)).toEqual(['places']);
    expect([meter.places, meter.inFlight]).toEqual([2, 2]);
    return { world, meter, out };
  }

  const sentAt = (stories: readonly Story[]) => stories.map(({ sends }) => sends.map(({ at }) => at));

  test('are counted from send to end, by a limit that is not on them as well', () => {
    const world = new World();
    const standings = arriveTimes(world, 3);
    for (const standing of standings) world.send(standing);
    expect(standings.map(({ ticket }) => ticket.among)).toEqual([1, 2, 3]);
    const { meter } = world.limit;
    expect([meter.inFlight, meter.places]).toEqual([3, undefined]);
    expect([meter.ended(0), meter.inFlight]).toEqual([false, 2]); // nobody can be waiting for it
    expect(meter.sent(0)).toBe(3);
  });

  test('who finds none free waits, without a timer, until one is', () => {
    const { world, meter } = twoPlaces(200);
    const waiting = ['a', 'b', 'c'].map((client) => world.call({ client }));
    // Nothing but the end of their patience is to be woken for.
    expect(world.gate.nextWake()).toBe(2020);
    expect(meter.delay(20)).toBe(Number.POSITIVE_INFINITY);
    world.runUntil(1199.999);
    expect(sentAt(waiting)).toEqual([[], [], []]); // the heads came at 1000, their bodies last until 1200
    world.runUntil(1200);
    expect(sentAt(waiting).flat()).toEqual([1200, 1200]);
    expect(meter.inFlight).toBe(2);
  });

  test('one that is freed is not given to two whose bodies are yet to be read', () => {
    const { world, meter } = twoPlaces();
    const call = { facts: { method: 'PUT', expectsContinue: true }, upload: 100 };
    const waiting = ['a', 'b', 'c', 'd'].map((client) => world.call({ client, ...call }));
    world.runUntil(1150); // both places were freed at 1000
    expect(sentAt(waiting).flat()).toEqual([1100, 1100]);
    expect(meter.inFlight).toBe(2);
  });

  test('one that is freed lets one go, and no more', () => {
    const { world, meter, out } = twoPlaces();
    const waiting = ['a', 'b'].map((client) => world.call({ client }));
    world.at(300, () => out[0]?.drive.gone());
    world.runUntil(500);
    expect(sentAt(waiting)).toEqual([[300], []]);
    expect(meter.inFlight).toBe(2);
  });

  test('the wait is told by the rate that comes of them', () => {
    const { world } = twoPlaces();
    // Two of three were accepted in the last second: 2/s, so 500 ms until a place is free, and as much for each turn.
    const standings = ['a', 'b', 'c', 'd', 'e'].map((client) => world.arrive({ client }));
    expect(standings.slice(0, 4).map(({ told }) => told)).toEqual(Array.from({ length: 4 }));
    expect(standings[4]?.told).toEqual(refusal('over_share', 2500 + 500));
  });

  test('are found of an upstream that has twenty, and hardly one is ever free while somebody waits', () => {
    const places = new Concurrency({ kind: 'concurrency', limit: 20 });
    let idle = 0;
    let idleSince: number | undefined;
    const world = new World({
      seed: 5,
      onStep: ({ limit: { meter, queue }, gate, now }) => {
        if (idleSince !== undefined) idle += now - idleSince;
        const waits = meter.places !== undefined && queue.size > 0 && meter.delay(now) === 0;
        idleSince = waits && (gate.nextWake() ?? Number.POSITIVE_INFINITY) > now ? now : undefined;
      },
    });
    world.respond = () => {
      const after = 100 * -Math.log(1 - world.random());
      if (!places.arrive().accepted) return { outcome: response(429), after: 10 };
      world.at(world.now + after, () => places.leave());
      return { outcome: response(200), after };
    };
    for (let i = 0; i < 10; i += 1) world.stream(40, 40_000, { client: `${i}`, ...ONCE });
    world.runUntil(40_000);
    expect(world.ofType('cut').at(-1)?.cause).toBe('places');
    expect(Math.abs((world.limit.meter.places ?? 0) - 20)).toBeLessThanOrEqual(2);
    expect(world.limit.queue.size).toBeGreaterThan(0);
    expect(idle).toBeLessThan(40); // of 40 s: a place that calm gives is found by whatever happens next
  });

  test('who waits at a limit nested in it goes as well', () => {
    const { world } = twoPlaces();
    const [outer, inner] = [world.call({ client: 'outer' }), world.call({ client: 'inner', refs: [SHARED, INNER] })];
    world.runUntil(999);
    expect(sentAt([outer, inner])).toEqual([[], []]);
    world.runUntil(1000);
    expect(sentAt([outer, inner])).toEqual([[1000], [1000]]);
  });
});

describe('more than the rate can serve in time', () => {
  test('is refused at once, when the wait would be longer than a client is kept', () => {
    const world = tenASecond();
    const standings = arriveTimes(world, 12);
    // The gate's 100 ms and 100 ms for each before it: 1000 ms for the tenth in the queue, 1100 for the next.
    expect(standings.slice(1, 11).map(({ told }) => told)).toEqual(Array.from({ length: 10 }));
    expect(standings[11]?.told).toEqual(refusal('over_share', 1200));
    expect(world.ofType('decision').at(-1)).toMatchObject({ decision: 'refused', why: 'over_share' });
    world.runUntil(2000);
    expect(standings.slice(1, 11).map(({ at }) => Math.round(at))).toEqual(
      Array.from({ length: 10 }, (_, i) => 100 + 100 * i),
    );
  });

  test('counts turns at the share of the rate: among five who wait, five times as long', () => {
    const world = tenASecond();
    for (const client of ['a', 'a', 'a', 'b', 'b', 'c', 'c', 'd', 'd', 'e', 'e']) world.arrive({ client });
    // a has two waiting: (2 + 1) · 5 − 1 = 14 turns, though no more than the ten that wait: 1100 ms.
    expect(world.arrive({ client: 'a' }).told).toEqual(refusal('over_share'));
    // A newcomer: 1 · 6 − 1 turns.
    expect(world.arrive({ client: 'f' }).told).toBeUndefined();
  });

  test('leaves none of the rate unused: no more go before a request than wait', () => {
    const world = tenASecond();
    for (const client of ['a', 'b', 'c', 'd', 'e']) world.arrive({ client });
    // At a fifth of the rate its third would wait for 1400 ms; but the others have one each, and are gone by then.
    const standings = Array.from({ length: 8 }, () => world.arrive({ client: 'a' }));
    expect(standings.map(({ told }) => told === undefined)).toEqual([...Array<boolean>(6).fill(true), false, false]);
    world.runUntil(1000);
    expect(standings.slice(0, 6).map(({ at }) => Math.round(at))).toEqual([500, 600, 700, 800, 900, 1000]);
  });

  test('a heavier client is kept for less long, so more of it waits', () => {
    const world = tenASecond();
    for (const client of ['a', 'b', 'b']) world.arrive({ client });
    const heavy = Array.from({ length: 20 }, () => world.arrive({ client: 'heavy', weight: 4 }));
    // (n + 1) · 5/4 − 1 turns of 100 ms, and 100 ms: at most 1000 for n up to 7.
    expect(heavy.filter(({ told }) => told === undefined)).toHaveLength(8);
  });

  test('a client that has been queued for over a second waits 0.3 of that at most', () => {
    const world = tenASecond();
    arriveTimes(world, 8); // seven wait
    for (let now = 105; now < 1000; now += 100) {
      world.runUntil(now);
      expect(world.arrive().told).toBeUndefined(); // one has just left
    }
    world.runUntil(1000);
    expect(world.arrive().told).toBeUndefined(); // 700 ms
    world.runUntil(1001);
    expect(world.arrive().told).toEqual(refusal('over_share'));
    expect(world.arrive({ client: 'newcomer' }).told).toBeUndefined();
  });

  test('its deadline is kept in mind too', () => {
    const world = tenASecond();
    arriveTimes(world, 4);
    expect(world.arrive({ deadline: 399 }).told).toEqual(refusal('over_share'));
    expect(world.arrive({ deadline: 400 }).told).toBeUndefined();
  });

  test('a full queue is full for everyone', () => {
    const world = tenASecond({ maxWait: 10_000, maxDepth: 3 });
    arriveTimes(world, 4);
    expect(world.arrive({ client: 'other' }).told).toEqual(refusal('queue_full'));
    expect(world.limit.queue.size).toBe(3);
    world.runUntil(100);
    expect(world.arrive({ client: 'other' }).told).toBeUndefined();
  });
});

describe('when to come back', () => {
  test('is a slot of its own: the refused come back at the rate, not all at once', () => {
    const world = tenASecond();
    arriveTimes(world, 11);
    const hints = ['a', 'b', 'c', 'd'].map(() => world.arrive().told);
    expect(hints).toEqual([1200, 1300, 1400, 1500].map((retryAfter) => refusal('over_share', retryAfter)));
    world.runUntil(400);
    // Four have been served since, and the next slot is the fifth.
    expect(arriveTimes(world, 4).map(({ told }) => told)).toEqual(Array.from({ length: 4 }));
    expect(world.arrive().told).toEqual(refusal('over_share', 1600 - 400));
  });

  test('is at most 30 s later than it would have had to wait', () => {
    const world = tenASecond();
    const standings = Array.from({ length: 2000 }, (_, i) => world.arrive({ client: String(i % 1000) }));
    expect(Math.max(...hintsOf(standings))).toBe(31_100); // beyond a queue of a second
  });

  test('one that floods is told its own turn, and pushes nobody else away', () => {
    const world = tenASecond();
    for (let now = 0; now < 10_000; now += 10) {
      world.runUntil(now);
      world.arrive({ client: 'flood' });
    }
    expect(hintsOf(arriveTimes(world, 10, { client: 'flood' })).at(-1)).toBe(30_310);
    const modest = hintsOf(arriveTimes(world, 15, { client: 'modest' }));
    expect(modest.length).toBeGreaterThan(3);
    for (const hint of modest) expect(hint).toBeLessThan(3000);
  });

  test('a second early or two late is in time: seconds are whole, and there is a way to go', () => {
    const wait = (late: number) => {
      const world = tenASecond();
      const { ticket } = world.arrive({ client: 'b' });
      world.runUntil(100);
      world.store.clients.promise(ticket.slot!, 5000);
      world.runUntil(5000 + late);
      for (let i = 0; i < 12; i += 1) world.arrive({ client: `${i}` });
      return world.arrive({ client: 'b' }).told;
    };
    for (const late of [-1000, 0, 2000]) expect(wait(late)).toBeUndefined();
    for (const late of [-1001, 2001]) expect(wait(late)).toEqual(refusal('over_share'));
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

describe('a quota that the upstream tells', () => {
  const left = (remaining: number) =>
    response(200, { quota: { remaining, limit: undefined, resetIn: 10_000, window: undefined } });

  /** An older request is in flight all the while; each of the others is answered with what is left. */
  function besideSlow(...words: readonly number[]): World {
    const world = new World({ random: MIDDLE });
    world.send(world.arrive({ client: 'slow' }));
    for (const remaining of words) {
      world.runUntil(world.now + 100);
      const standing = world.arrive();
      expect(standing.told).toEqual(ADMITTED);
      world.serve(standing, left(remaining));
    }
    return world;
  }

  test('knows of an older request that is still in flight: all that is left may be used', () => {
    const world = besideSlow(2, 1, 0);
    expect(world.limit.meter.inFlight).toBe(1);
    expect(world.limit.meter.delay(300)).toBe(10_000);
    expect(world.arrive().told).toEqual(refusal('blocked', 10_000));
  });

  test('does not know of what was sent after the request that is answered so', () => {
    const world = besideSlow();
    const standings = arriveTimes(world, 3);
    for (const standing of standings) world.send(standing);
    const [first, second] = standings;
    world.answer(second!, left(2)); // one after it: one is left
    expect(world.limit.meter.delay(0)).toBe(0);
    world.answer(first!, left(2)); // two after it, though one of them has been answered
    expect(world.limit.meter.delay(0)).toBe(10_000);
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
    expect(second!.at).toBe(100);
    expect(world.ofType('dequeued')).toEqual([
      { type: 'dequeued', upstream: 'up', waited: 40, admitted: false },
      { type: 'dequeued', upstream: 'up', waited: 100, admitted: true },
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
    expect(world.limit.meter.inFlight).toBe(0);
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

describe('a listener that looks at the gate while it is told of a change', () => {
  test('sees the limit as it has become, and is told once', () => {
    const states: string[] = [];
    let depth = 0;
    const world = new World({
      upstream: limitedTo(10),
      random: MIDDLE,
      onEvent: (event) => {
        if (event.type !== 'limit-state') return;
        depth += 1;
        expect(depth).toBe(1);
        const [limit] = world.gate.view(world.now).limits;
        states.push(`${event.from} ${event.to} ${limit?.state}`);
        depth -= 1;
      },
    });
    world.serve(world.arrive({ client: 'a' }), response(429));
    world.runUntil(200);
    world.serve(world.arrive({ client: 'b' }));
    world.runUntil(1000); // the hold of the cut at 0 is over
    world.gate.view(1000);
    expect(states).toEqual(['restoring backoff backoff', 'backoff cooldown cooldown', 'cooldown restoring restoring']);
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
          nested: '',
          scope: 'upstream',
          key: '',
          state: 'restoring',
          rate: 10,
          ceiling: 10,
          places: undefined,
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
