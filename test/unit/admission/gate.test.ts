import { describe, expect, test } from 'vitest';
import type { QueueSettings } from '../../../src/core/limits/longest-wait.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { RATE_RULES } from '../../../src/core/rate/rules.ts';
import type { Arrival, QueuedTicket, CallRecord } from '../../support/core/call-record.ts';
import { Concurrency } from '../../../src/simulator/limit-models/concurrency.ts';
import { limitedTo, response, SEND_ONCE, SHARED } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

/** The middle of U(…), so that a Retry-After is always rounded down. */
const MIDDLE = () => 0.5;

const ADMITTED = { kind: 'admitted' };

function refusal(why: string, retryAfter?: number): unknown {
  const expectedWait: unknown = retryAfter === undefined ? expect.any(Number) : expect.closeTo(retryAfter, 6);
  return { kind: 'refused', why, retryAfterMs: expectedWait };
}

/** A limit of 10 a second: after the first request, one at 100 ms, 200 ms, 300 ms, … */
function tenASecond(queue: Partial<QueueSettings> = {}): World {
  const upstream = { ...limitedTo(10), queue: { maxWait: 1000, maxDepth: 10_000, ...queue } };
  return new World({ upstream, random: MIDDLE });
}

function hintsOf(requests: readonly QueuedTicket[]): number[] {
  return requests.flatMap(({ admission }) => (admission?.kind === 'refused' ? [admission.retryAfterMs] : []));
}

function arriveTimes(world: World, count: number, arrival: Arrival = {}): QueuedTicket[] {
  return Array.from({ length: count }, () => world.arrive(arrival));
}

describe('an arriving request', () => {
  test('passes at once while no limit is met', () => {
    const world = new World();
    expect(arriveTimes(world, 1000).every(({ admission }) => admission?.kind === 'admitted')).toBe(true);
    expect(world.gate.nextWake()).toBeUndefined();
    expect(world.ofType('decision')[0]).toEqual({
      type: 'decision',
      upstream: 'up',
      decision: 'passed',
      why: undefined,
    });
  });

  test('passes at once if the rate allows it, and otherwise when its token is due', () => {
    const world = tenASecond();
    const [first, ...others] = arriveTimes(world, 4);
    expect(first?.admission).toEqual(ADMITTED);
    expect(others.map(({ admission }) => admission)).toEqual([undefined, undefined, undefined]);
    expect(world.gate.nextWake()).toBe(100);
    world.runUntil(1000);
    expect(others.map(({ at, admission }) => [at, admission])).toEqual([100, 200, 300].map((at) => [at, ADMITTED]));
    expect(world.gate.nextWake()).toBeUndefined();
    expect(world.ofType('dequeued').map(({ waited, admitted }) => [waited, admitted])).toEqual([
      [100, true],
      [200, true],
      [300, true],
    ]);
  });

  test('does not overtake the queue, though a token is available', () => {
    const world = tenASecond();
    const [, waiting] = arriveTimes(world, 2);
    world.now = 105; // its token is due, but the wake has not come
    const late = world.arrive();
    expect([waiting?.admission, late.admission]).toEqual([undefined, undefined]);
    world.runUntil(300);
    expect([waiting?.admission, late.admission]).toEqual([ADMITTED, ADMITTED]);
  });

  test('is not affected by a wake that is too early', () => {
    const world = tenASecond();
    const [, waiting] = arriveTimes(world, 2);
    world.gate.wake(50);
    expect(waiting?.admission).toBeUndefined();
    expect(world.gate.nextWake()).toBe(100);
  });
});

describe('a wake that is late', () => {
  /** A limit of 200 a second, one every 5 ms, with six requests waiting; woken only by the test. */
  function sixWaiting(): { world: World; admitted: () => number } {
    const world = new World({ upstream: limitedTo(200), random: MIDDLE });
    arriveTimes(world, 1);
    const waiting = arriveTimes(world, 6);
    expect(world.gate.nextWake()).toBe(5);
    return { world, admitted: () => waiting.filter(({ admission }) => admission?.kind === 'admitted').length };
  }

  test('by 7 ms admits the requests whose tokens became due meanwhile, and loses no token', () => {
    const { world, admitted } = sixWaiting();
    world.gate.wake(12); // those due at 5 and 10
    expect(admitted()).toBe(2);
    expect(world.gate.nextWake()).toBe(15);
  });

  test('by more than 10 ms recovers the tokens of 10 ms', () => {
    const { world, admitted } = sixWaiting();
    world.gate.wake(30); // as if due at 20: those of 20, 25 and 30
    expect(admitted()).toBe(3);
    expect(world.gate.nextWake()).toBe(35);
  });

  test('recovers no tokens of idle time: after an hour one request passes, and the next an interval later', () => {
    const { world } = sixWaiting();
    world.runUntil(3_600_000);
    const [first, second] = arriveTimes(world, 2);
    expect([first?.admission, second?.admission]).toEqual([ADMITTED, undefined]);
    expect(world.gate.nextWake()).toBe(3_600_005);
  });

  test('admits a request whose token arrives exactly at its deadline', () => {
    const world = tenASecond();
    arriveTimes(world, 3);
    const last = world.arrive({ deadline: 300 });
    world.runUntil(400);
    expect([last.admission, last.at]).toEqual([ADMITTED, 300]);
  });
});

describe('concurrency places', () => {
  const INNER: LimitRef = { upstream: 'up', nested: 'inner', scope: 'credential', key: 'inner' };
  const ONCE = { plan: { retry: SEND_ONCE } };

  /**
   * Three are sent at once. Two get a response after a second, and the third is rejected. The rejection is attributed to the number in
   * flight, so two places are left, and both are taken.
   */
  function twoPlaces(download = 0) {
    const rules = {
      ...RATE_RULES,
      makeConcurrencyDetector: () => ({ onAccepted() {}, onRejected: (among: number) => among, reset() {} }),
    };
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
    expect([meter.concurrencyLimit, meter.inFlight]).toEqual([2, 2]);
    return { world, meter, out };
  }

  const sentAt = (records: readonly CallRecord[]) => records.map(({ sends }) => sends.map(({ at }) => at));

  test('are counted from the send to the end of the response, also by a limit on the rate', () => {
    const world = new World();
    const requests = arriveTimes(world, 3);
    for (const request of requests) world.send(request);
    expect(requests.map(({ ticket }) => ticket.inFlightAtSend)).toEqual([1, 2, 3]);
    const { meter } = world.limit;
    expect([meter.inFlight, meter.concurrencyLimit]).toEqual([3, undefined]);
    expect([meter.onEnded(0), meter.inFlight]).toEqual([false, 2]); // no request can be waiting for it
    expect(meter.onSent(0)).toBe(3);
  });

  test('leave a request waiting without a timer while none of them is free', () => {
    const { world, meter } = twoPlaces(200);
    const waiting = ['a', 'b', 'c'].map((client) => world.call({ client }));
    // Only the maximum waits need a wake.
    expect(world.gate.nextWake()).toBe(2020);
    expect(meter.delay(20)).toBe(Number.POSITIVE_INFINITY);
    world.runUntil(1199.999);
    expect(sentAt(waiting)).toEqual([[], [], []]); // the response heads came at 1000, the bodies last until 1200
    world.runUntil(1200);
    expect(sentAt(waiting).flat()).toEqual([1200, 1200]);
    expect(meter.inFlight).toBe(2);
  });

  test('are not assigned twice while bodies of admitted requests are still being read', () => {
    const { world, meter } = twoPlaces();
    const call = { facts: { method: 'PUT', expectsContinue: true }, upload: 100 };
    const waiting = ['a', 'b', 'c', 'd'].map((client) => world.call({ client, ...call }));
    world.runUntil(1150); // both places came free at 1000
    expect(sentAt(waiting).flat()).toEqual([1100, 1100]);
    expect(meter.inFlight).toBe(2);
  });

  test('admit one request, and no more, when one becomes free', () => {
    const { world, meter, out } = twoPlaces();
    const waiting = ['a', 'b'].map((client) => world.call({ client }));
    world.at(300, () => out[0]?.driver.onClientGone());
    world.runUntil(500);
    expect(sentAt(waiting)).toEqual([[300], []]);
    expect(meter.inFlight).toBe(2);
  });

  test('set the estimated wait through the resulting rate', () => {
    const { world } = twoPlaces();
    // Two of three were accepted in the last second: 2/s, so 500 ms until a place is free, and as much for each turn. Slots are farther apart while requests wait.
    const requests = ['a', 'b', 'c', 'd', 'e'].map((client) => world.arrive({ client }));
    expect(requests.slice(0, 4).map(({ admission }) => admission)).toEqual(Array.from({ length: 4 }));
    expect(requests[4]?.admission).toEqual(refusal('over_share', 2500 + 550));
  });

  test('are learned from an upstream that has twenty, and are hardly ever free while a request waits', () => {
    const places = new Concurrency({ kind: 'concurrency', limit: 20 });
    let idle = 0;
    let idleSince: number | undefined;
    const world = new World({
      seed: 5,
      onStep: ({ limit: { meter, queue }, gate, now }) => {
        if (idleSince !== undefined) idle += now - idleSince;
        const waits = meter.concurrencyLimit !== undefined && queue.size > 0 && meter.delay(now) === 0;
        idleSince = waits && (gate.nextWake() ?? Number.POSITIVE_INFINITY) > now ? now : undefined;
      },
    });
    world.respond = () => {
      const after = 100 * -Math.log(1 - world.random());
      if (!places.tryAcquire().accepted) return { outcome: response(429), after: 10 };
      world.at(world.now + after, () => places.release());
      return { outcome: response(200), after };
    };
    for (let i = 0; i < 10; i += 1) world.stream(40, 40_000, { client: `${i}`, ...ONCE });
    world.runUntil(40_000);
    expect(world.ofType('cut').at(-1)?.cause).toBe('places');
    expect(Math.abs((world.limit.meter.concurrencyLimit ?? 0) - 20)).toBeLessThanOrEqual(2);
    expect(world.limit.queue.size).toBeGreaterThan(0);
    expect(idle).toBeLessThan(40); // of 40 s: a place added in quiet time is used at the next event
  });

  test('admit a request that waits at a nested limit, too', () => {
    const { world } = twoPlaces();
    const [outer, inner] = [world.call({ client: 'outer' }), world.call({ client: 'inner', refs: [SHARED, INNER] })];
    world.runUntil(999);
    expect(sentAt([outer, inner])).toEqual([[], []]);
    world.runUntil(1000);
    expect(sentAt([outer, inner])).toEqual([[1000], [1000]]);
  });
});

describe('a request beyond the rate', () => {
  test('is refused at once if its wait would exceed the maximum of its client', () => {
    const world = tenASecond();
    const requests = arriveTimes(world, 12);
    // The gate's 100 ms and 100 ms for each request ahead: 1000 ms for the tenth in the queue, 1100 for the next.
    expect(requests.slice(1, 11).map(({ admission }) => admission)).toEqual(Array.from({ length: 10 }));
    expect(requests[11]?.admission).toEqual(refusal('over_share', 1200));
    expect(world.ofType('decision').at(-1)).toMatchObject({ decision: 'refused', why: 'over_share' });
    world.runUntil(2000);
    expect(requests.slice(1, 11).map(({ at }) => Math.round(at))).toEqual(
      Array.from({ length: 10 }, (_, i) => 100 + 100 * i),
    );
  });

  test("waits for turns at its client's share of the rate: five times as long with five clients", () => {
    const world = tenASecond();
    for (const client of ['a', 'a', 'a', 'b', 'b', 'c', 'c', 'd', 'd', 'e', 'e']) world.arrive({ client });
    // a has two waiting: (2 + 1) · 5 − 1 = 14 turns, but at most the ten that wait: 1100 ms.
    expect(world.arrive({ client: 'a' }).admission).toEqual(refusal('over_share'));
    // A newcomer: 1 · 6 − 1 turns.
    expect(world.arrive({ client: 'f' }).admission).toBeUndefined();
  });

  test('waits for no more turns than requests wait, so that none of the rate is unused', () => {
    const world = tenASecond();
    for (const client of ['a', 'b', 'c', 'd', 'e']) world.arrive({ client });
    // At a fifth of the rate its third would wait for 1400 ms; but the others have one each, and are served by then.
    const requests = Array.from({ length: 8 }, () => world.arrive({ client: 'a' }));
    expect(requests.map(({ admission }) => admission === undefined)).toEqual([
      ...Array<boolean>(6).fill(true),
      false,
      false,
    ]);
    world.runUntil(1000);
    expect(requests.slice(0, 6).map(({ at }) => Math.round(at))).toEqual([500, 600, 700, 800, 900, 1000]);
  });

  test('waits less if its client has a higher weight, so more requests of that client queue', () => {
    const world = tenASecond();
    for (const client of ['a', 'b', 'b']) world.arrive({ client });
    const heavy = Array.from({ length: 20 }, () => world.arrive({ client: 'heavy', weight: 4 }));
    // (n + 1) · 5/4 − 1 turns of 100 ms, and 100 ms: at most 1000 for n up to 7.
    expect(heavy.filter(({ admission }) => admission === undefined)).toHaveLength(8);
  });

  test('waits at most 0.3 of the time for which its client has been queued, if that is over a second', () => {
    const world = tenASecond();
    arriveTimes(world, 8); // seven wait
    for (let now = 105; now < 1000; now += 100) {
      world.runUntil(now);
      expect(world.arrive().admission).toBeUndefined(); // one has just left
    }
    world.runUntil(1000);
    expect(world.arrive().admission).toBeUndefined(); // 700 ms
    world.runUntil(1001);
    expect(world.arrive().admission).toEqual(refusal('over_share'));
    expect(world.arrive({ client: 'newcomer' }).admission).toBeUndefined();
  });

  test('is refused if its deadline is before the end of the wait', () => {
    const world = tenASecond();
    arriveTimes(world, 4);
    expect(world.arrive({ deadline: 399 }).admission).toEqual(refusal('over_share'));
    expect(world.arrive({ deadline: 400 }).admission).toBeUndefined();
  });

  test('is refused while the queue is full, whatever its client', () => {
    const world = tenASecond({ maxWait: 10_000, maxDepth: 3 });
    arriveTimes(world, 4);
    expect(world.arrive({ client: 'other' }).admission).toEqual(refusal('queue_full'));
    expect(world.limit.queue.size).toBe(3);
    world.runUntil(100);
    expect(world.arrive({ client: 'other' }).admission).toBeUndefined();
  });
});

describe('Retry-After of a refusal', () => {
  test('is a slot of its own: refused clients return at the rate, not all at once', () => {
    const world = tenASecond();
    arriveTimes(world, 11);
    const hints = ['a', 'b', 'c', 'd'].map(() => world.arrive().admission);
    expect(hints).toEqual([1200, 1300, 1400, 1500].map((retryAfter) => refusal('over_share', retryAfter)));
    world.runUntil(400);
    // Four have been served since, so the next slot is the fifth.
    expect(arriveTimes(world, 4).map(({ admission }) => admission)).toEqual(Array.from({ length: 4 }));
    expect(world.arrive().admission).toEqual(refusal('over_share', 1600 - 400));
  });

  test('is at most 30 s later than the estimated wait', () => {
    const world = tenASecond();
    const requests = Array.from({ length: 2000 }, (_, i) => world.arrive({ client: String(i % 1000) }));
    expect(Math.max(...hintsOf(requests))).toBe(31_100); // beyond a queue of a second
  });

  test('names its own turn to a client with an excessive demand, and delays no other client', () => {
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

  test('allows a return up to a second early or two seconds late, for whole seconds and the network', () => {
    const wait = (late: number) => {
      const world = tenASecond();
      const { ticket } = world.arrive({ client: 'b' });
      world.runUntil(100);
      world.store.clients.setPromisedReturn(ticket.clientSlot!, 5000);
      world.runUntil(5000 + late);
      for (let i = 0; i < 12; i += 1) world.arrive({ client: `${i}` });
      return world.arrive({ client: 'b' }).admission;
    };
    for (const late of [-1000, 0, 2000]) expect(wait(late)).toBeUndefined();
    for (const late of [-1001, 2001]) expect(wait(late)).toEqual(refusal('over_share'));
  });
});

describe('a client held by the upstream', () => {
  test('is refused until exactly that time, with whole seconds rounded up; other clients are not', () => {
    const world = new World({ random: MIDDLE });
    world.serve(world.arrive({ client: 'a' }), response(429, { retryAfterMs: 2000 }));
    world.now = 500;
    expect(world.arrive({ client: 'a' }).admission).toEqual(refusal('held', 2000));
    expect(world.arrive({ client: 'b' }).admission).toEqual(ADMITTED);
    world.now = 1999.5;
    expect(world.arrive({ client: 'a' }).admission).toEqual(refusal('held', 1000));
    world.now = 2000;
    expect(world.arrive({ client: 'a' }).admission?.kind).not.toBe('refused');
  });

  test('has its queued requests refused when their turn comes', () => {
    const world = tenASecond();
    const out = world.arrive({ client: 'a' });
    world.send(out);
    const queued = world.arrive({ client: 'a' });
    const other = world.arrive({ client: 'b' });
    world.now = 50;
    world.answer(out, response(429, { retryAfterMs: 4000 }));
    world.runUntil(400);
    expect(queued.admission).toEqual(refusal('held'));
    expect(queued.admission?.kind === 'refused' && queued.at + queued.admission.retryAfterMs).toBeGreaterThanOrEqual(
      4050,
    );
    expect(other.admission).toEqual(ADMITTED);
  });
});

describe('a quota that the upstream reports', () => {
  const left = (remaining: number) =>
    response(200, { quota: { remaining, limit: undefined, resetIn: 10_000, window: undefined } });

  /** An older request is in flight throughout; each of the others is answered with the remainder. */
  function besideSlowRequest(...remainders: readonly number[]): World {
    const world = new World({ random: MIDDLE });
    world.send(world.arrive({ client: 'slow' }));
    for (const remaining of remainders) {
      world.runUntil(world.now + 100);
      const request = world.arrive();
      expect(request.admission).toEqual(ADMITTED);
      world.serve(request, left(remaining));
    }
    return world;
  }

  test('includes an older request that is still in flight: all of the remainder may be used', () => {
    const world = besideSlowRequest(2, 1, 0);
    expect(world.limit.meter.inFlight).toBe(1);
    expect(world.limit.meter.delay(300)).toBe(10_000);
    expect(world.arrive().admission).toEqual(refusal('blocked', 10_000));
  });

  test('does not include requests sent after the one answered', () => {
    const world = besideSlowRequest();
    const requests = arriveTimes(world, 3);
    for (const request of requests) world.send(request);
    const [first, second] = requests;
    world.answer(second!, left(2)); // one sent after it: one is left
    expect(world.limit.meter.delay(0)).toBe(0);
    world.answer(first!, left(2)); // two sent after it, though one of them has been answered
    expect(world.limit.meter.delay(0)).toBe(10_000);
  });
});

describe('the queue', () => {
  test('drops requests that exceed their maximum wait, with a Retry-After', () => {
    const world = tenASecond();
    arriveTimes(world, 9);
    const late = world.arrive({ deadline: 1000 });
    expect(late.admission).toBeUndefined();
    // A heavy client takes its turns.
    for (let i = 0; i < 12; i += 1) world.arrive({ client: 'heavy', weight: 20 });
    world.runUntil(2000);
    expect(late.admission).toEqual(refusal('queue_timeout'));
    expect(late.at).toBe(1000);
    expect(world.ofType('dequeued')).toContainEqual({
      type: 'dequeued',
      upstream: 'up',
      waited: 1000,
      admitted: false,
    });
  });

  test('releases the place of a request that leaves', () => {
    const world = tenASecond();
    const [, first, second] = arriveTimes(world, 3);
    world.now = 40;
    world.gate.cancel(first!.ticket, 40);
    world.runUntil(1000);
    expect(first!.admission).toBeUndefined();
    expect(second!.at).toBe(100);
    expect(world.ofType('dequeued')).toEqual([
      { type: 'dequeued', upstream: 'up', waited: 40, admitted: false },
      { type: 'dequeued', upstream: 'up', waited: 100, admitted: true },
    ]);
    expect(world.gate.nextWake()).toBeUndefined();
  });

  test('ignores the cancellation of a request that has no reservation', () => {
    const world = tenASecond();
    const request = world.arrive();
    world.gate.cancel(request.ticket, 0);
    world.serve(request);
    world.gate.cancel(request.ticket, 0);
    expect(world.ofType('dequeued')).toEqual([]);
    expect(world.limit.meter.inFlight).toBe(0);
  });
});

describe('clients', () => {
  test('stay in the table while they have a ticket, and may be evicted afterwards', () => {
    const world = new World({ maxTracked: 1 });
    const a = world.arrive({ client: 'a' });
    const b = world.arrive({ client: 'b' });
    expect(b.ticket.clientSlot).not.toBe(a.ticket.clientSlot);
    expect(world.gate.view(0).clients.tracked).toBe(1);
    world.gate.onExchangeEnd(a.ticket);
    world.gate.onExchangeEnd(a.ticket); // a repeat has no effect
    world.gate.onExchangeEnd(b.ticket);
    world.arrive({ client: 'c' });
    expect(world.ofType('client-evicted')).toHaveLength(1);
  });

  test('add no demand by a retry', () => {
    const world = new World();
    const request = world.arrive();
    world.gate.requestAdmission(request.ticket, 10_000, 0);
    world.gate.requestAdmission(request.ticket, 10_000, 0);
    expect(world.store.clients.demand(request.ticket.clientSlot!, 0)).toBe(0.5);
  });
});

describe('a listener that reads the gate while it is notified of a change', () => {
  test('sees the updated limit, and is notified once', () => {
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
    world.runUntil(1000); // the hold after the cut at 0 is over
    world.gate.view(1000);
    expect(states).toEqual(['restoring backoff backoff', 'backoff cooldown cooldown', 'cooldown restoring restoring']);
  });
});

describe('the view', () => {
  test('contains the limits, clients and budgets in effect', () => {
    const world = tenASecond();
    const [first] = arriveTimes(world, 3);
    world.send(first!);
    world.store.upstream('up').retryBudget.spend();
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
          concurrencyLimit: undefined,
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
