/** Runs whole exchanges at one gate in virtual time, with random failures, departures and shutdowns. */
import { PACED_RETURN_GRACE } from '../../src/core/limits/longest-wait.ts';
import type { UpstreamSettings } from '../../src/store/upstream-state.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { placeYieldDelay } from '../../src/core/limits/limit-places.ts';
import { LocalMeter } from '../../src/core/limits/local-meter.ts';
import { OTHERS_ACTIVE_FOR } from '../../src/core/limits/shared-places.ts';
import { RATE_RULES } from '../../src/core/rate/rules.ts';
import type { Millis, Random } from '../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../src/core/exchange/attempt-outcome.ts';
import { Concurrency } from '../../src/simulator/limit-models/concurrency.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import type { Call, Reply, CallRecord } from '../support/core/call-record.ts';
import { failure, response, retryPolicy, SHARED } from '../support/core/policy-builders.ts';
import { World } from '../support/core/world.ts';

interface Setting {
  readonly seed: number;
  readonly upstream: Partial<UpstreamSettings>;
  readonly calls: number;
  /** The interval over which the calls arrive. */
  readonly span: Millis;
  readonly clients: number;
  readonly maxTracked: number;
}

const setting: fc.Arbitrary<Setting> = fc.record({
  seed: fc.integer({ min: 0, max: 2 ** 31 }),
  upstream: fc.record({
    scope: fc.constantFrom('upstream', 'upstream', 'client'),
    rate: fc.constantFrom(
      { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 },
      { initialRate: 20, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 0 },
      { initialRate: undefined, maxRate: 5, minRate: 1, cooldown: 1000 },
      { initialRate: 100, maxRate: 100, minRate: 50, cooldown: 5000 },
    ),
    queue: fc.record({ maxWait: fc.constantFrom(0, 100, 1000), maxDepth: fc.constantFrom(0, 1, 5, 1000) }),
    budget: fc.constantFrom({ ratio: 0.2, burst: 10 }, { ratio: 0, burst: 1 }, { ratio: 1, burst: 100 }),
  }),
  calls: fc.integer({ min: 1, max: 60 }),
  span: fc.constantFrom(0, 100, 3000, 20_000),
  clients: fc.constantFrom(1, 3, 20),
  maxTracked: fc.constantFrom(2, 1000),
});

const OUTCOMES: readonly AttemptOutcome[] = [
  response(200),
  response(200),
  response(200),
  response(404),
  response(429),
  response(429, { retryAfterMs: 300 }),
  response(429, { retryAfterMs: 4000 }),
  response(429, { lock: true }),
  response(200, { quota: { remaining: 0, limit: 10, resetIn: 700, window: 1000 } }),
  response(200, { quota: { remaining: 2, limit: 10, resetIn: 900, window: undefined } }),
  response(500),
  response(503),
  response(503, { retryAfterMs: 1000 }),
  failure('connect', false),
  failure('reset', true),
];

function pick<T>(values: readonly T[], chance: Random): T {
  return values[Math.floor(chance() * values.length)]!;
}

/** An upstream that stays healthy, throttling or failing for a while. */
function makeUnstableReply(chance: Random): () => Reply {
  let left = 0;
  let condition = 0;
  return () => {
    if (left === 0) [left, condition] = [1 + Math.floor(20 * chance()), chance()];
    left -= 1;
    const after = 100 * chance() ** 3 * (chance() < 0.05 ? 100 : 1);
    if (chance() < 0.02) return 'silence';
    if (condition < 0.4) return { outcome: response(200), after };
    if (condition < 0.6) return { outcome: pick(OUTCOMES, chance), after };
    if (condition < 0.8) return { outcome: chance() < 0.8 ? response(429) : response(200), after };
    return { outcome: chance() < 0.9 ? failure('connect', false) : response(200), after };
  };
}

function callOf(name: string, scope: UpstreamSettings['scope'], chance: Random): Call {
  const own: LimitRef = { upstream: 'up', nested: '', scope: 'client', key: name };
  return {
    client: name,
    weight: pick([1, 1, 0.5, 4], chance),
    refs: scope === 'upstream' ? [SHARED] : [own],
    facts: {
      method: pick(['GET', 'POST', 'PUT'], chance),
      keyed: chance() < 0.5,
      expectsContinue: chance() < 0.2,
    },
    policy: {
      timeout: pick([500, 3000, 10_000], chance),
      perTryTimeout: pick([200, 2000], chance),
      retry: retryPolicy({ attempts: pick([1, 2, 4], chance), maxRetryAfter: pick([0, 5000], chance) }),
    },
    ...(chance() < 0.2 ? { upload: 500 * chance() } : {}),
    download: 300 * chance(),
    replayable: chance() < 0.9,
  };
}

interface Played {
  readonly world: World;
  readonly records: readonly CallRecord[];
}

/** Runs all calls, some of whose clients leave, and some of which a shutdown interrupts; then waits for all to end. */
function play({ seed, upstream, calls, span, clients, maxTracked }: Setting, onStep?: (world: World) => void): Played {
  const chance = seededRandom(seed);
  const world = new World({ upstream, seed: seed + 1, maxTracked, ...(onStep === undefined ? {} : { onStep }) });
  world.respond = makeUnstableReply(chance);
  const records: CallRecord[] = [];
  for (let i = 0; i < calls; i += 1) {
    const call = callOf(`client ${Math.floor(clients * chance())}`, upstream.scope ?? 'upstream', chance);
    const goes = chance() < 0.15 ? 1500 * chance() ** 2 : undefined;
    const drains = chance() < 0.05 ? 1000 * chance() : undefined;
    world.at(span * chance(), () => {
      const record = world.call(call);
      records.push(record);
      if (goes !== undefined) world.at(world.now + goes, () => record.driver.onClientGone());
      if (drains !== undefined) world.at(world.now + drains, () => record.driver.drain(world.now + 500));
    });
  }
  world.runUntil(span + 60_000);
  return { world, records };
}

function check(property: (given: Setting) => void, numRuns = 250, known: readonly Setting[] = []): void {
  fc.assert(fc.property(setting, property), { numRuns, examples: known.map((each) => [each]) });
}

test('every exchange ends in time and leaves no state', () => {
  check((given) => {
    const { world, records } = play(given);
    expect(records).toHaveLength(given.calls);
    for (const { call, driver, verdict, startedAt, endedAt } of records) {
      expect(driver.isDone).toBe(true);
      expect(verdict).toBeDefined();
      // The deadline pauses during the upload; an attempt that has begun has at least a millisecond.
      expect(endedAt - startedAt).toBeLessThanOrEqual(call.policy!.timeout! + (call.upload ?? 0) + 1.001);
    }
    for (const limit of world.store.limits()) {
      expect(limit.meter.inFlight).toBe(0);
      expect(limit.queue.size).toBe(0);
    }
    const queued = world.ofType('decision').filter(({ decision }) => decision === 'queued');
    expect(world.ofType('dequeued')).toHaveLength(queued.length);
    expect(world.ofType('retry-end').length).toBeLessThanOrEqual(records.length);
  });
});

test('no queue exceeds its bound', () => {
  check((given) => {
    const bound = given.upstream.queue?.maxDepth ?? 0;
    let longest = 0;
    play(given, (world) => {
      for (const { queue } of world.store.limits()) longest = Math.max(longest, queue.size);
    });
    expect(longest).toBeLessThanOrEqual(bound);
  });
});

test('a gate that is woken only at its own wake times keeps no request beyond its maximum wait', () => {
  check((given) => {
    const { world } = play(given, ({ gate, now }) => {
      const wake = gate.nextWake();
      if (wake !== undefined) expect(Number.isFinite(wake) && wake >= now - 1e-6).toBe(true);
    });
    // A client that returns in its slot may wait longer.
    const longest = (given.upstream.queue?.maxWait ?? 0) + PACED_RETURN_GRACE;
    for (const { waited } of world.ofType('dequeued')) expect(waited).toBeLessThanOrEqual(longest + 1e-6);
  });
});

test('sends no request of a client before the time that the upstream requested', () => {
  check((given) => {
    if (given.upstream.scope !== 'upstream' || given.maxTracked < given.clients) return;
    const heldUntil = new Map<string, Millis>();
    const chance = seededRandom(given.seed);
    const world = new World({ upstream: given.upstream, seed: given.seed });
    world.respond = ({ client, at }) => {
      expect(at).toBeGreaterThanOrEqual((heldUntil.get(client) ?? 0) - 1e-6);
      const after = 80 * chance();
      if (chance() < 0.6) return { outcome: response(200), after };
      const retryAfter = 3000 * chance();
      world.at(at + after, () => {
        heldUntil.set(client, Math.max(heldUntil.get(client) ?? 0, world.now + retryAfter));
      });
      return { outcome: response(429, { retryAfterMs: retryAfter }), after };
    };
    for (let i = 0; i < given.calls; i += 1) {
      world.at(given.span * chance(), () => {
        world.call({ client: `client ${Math.floor(given.clients * chance())}` });
      });
    }
    world.runUntil(given.span + 60_000);
  });
});

test('admits requests again once the upstream has recovered', () => {
  check((given) => {
    const chance = seededRandom(given.seed);
    const world = new World({
      upstream: { ...given.upstream, queue: { maxWait: 1000, maxDepth: 100 } },
      seed: given.seed,
    });
    const condition = makeUnstableReply(chance);
    world.respond = (send) => (send.at < 10_000 ? condition() : { outcome: response(200), after: 5 });
    const scope = given.upstream.scope ?? 'upstream';
    const records: CallRecord[] = [];
    for (let at = 0; at < 40_000; at += chance() < 0.9 ? 400 * chance() : 3000) {
      const call = callOf('client', scope, chance);
      world.at(at, () => records.push(world.call({ ...call, policy: { timeout: 3000, perTryTimeout: 2000 } })));
    }
    world.runUntil(60_000);
    // A probe in flight takes at most 2 s, the next is due within 6.25 s, and no hold exceeds 4 s. The recovery rate may be
    // low if little had been accepted before.
    for (const limit of world.store.limits()) expect(limit.isBlocked(world.now)).toBe(false);
    const late = records.filter(({ startedAt }) => startedAt > 25_000);
    expect(late.some(({ status }) => status === 200)).toBe(true);
    const { rate } = given.upstream;
    if (rate !== undefined && rate.minRate > 10) expect(late.every(({ status }) => status === 200)).toBe(true);
  }, 60);
});

/** The rate grows when a refused request arrives while others wait, whose wake was set by the earlier rate. */
const RATE_GROWS: Setting = {
  seed: 1_444_689_371,
  upstream: {
    scope: 'upstream',
    rate: { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 },
    queue: { maxWait: 0, maxDepth: 0 },
    budget: { ratio: 0.2, burst: 10 },
  },
  calls: 30,
  span: 20_000,
  clients: 3,
  maxTracked: 2,
};

/** A client takes a place at once and now holds most places, so that another need no longer leave it one. */
const OTHER_HOLDS_MOST: Setting = { ...RATE_GROWS, seed: 1_358_053_165, calls: 58 };

test('keeps no request waiting while a concurrency place is free', () => {
  // Every rejection is attributed to the number in flight.
  const rules = {
    ...RATE_RULES,
    makeConcurrencyDetector: () => ({ onAccepted() {}, onRejected: (among: number) => among, reset() {} }),
  };
  const rate = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };
  let waited = 0;
  check(
    ({ seed, calls, span, clients }) => {
      const chance = seededRandom(seed);
      const meter = new LocalMeter(rate, seededRandom(seed), rules);
      const places = new Concurrency({ kind: 'concurrency', limit: 1 + Math.floor(5 * chance()) });
      const world = new World({
        meters: { '': meter },
        onStep: ({ limit: { queue }, gate, now }) => {
          // After a failed probe, its address leaves the next one to others for a moment. A client with more than its share of the
          // places, whose requests take long, leaves some to others that are active.
          const heads = [...queue.flows].flatMap(({ head }) => head ?? []);
          const canTakePlace = heads.filter((head) => meter.delay(now, head.attributes) === 0);
          if (canTakePlace.some((head) => placeYieldDelay(head, now) === 0)) {
            expect(gate.nextWake()).toBeLessThanOrEqual(now);
          }
          if (canTakePlace.length > 0) expect(gate.nextWake()).toBeLessThanOrEqual(now + OTHERS_ACTIVE_FOR);
          if (queue.size > 0) waited += 1;
        },
      });
      world.respond = () => {
        const after = 300 * chance();
        if (!places.tryAcquire().accepted) return { outcome: response(429), after: 0 };
        world.at(world.now + after, () => places.release());
        return { outcome: chance() < 0.8 ? response(200) : pick(OUTCOMES, chance), after };
      };
      for (let i = 0; i < calls; i += 1) {
        const call = callOf(`client ${Math.floor(clients * chance())}`, 'upstream', chance);
        const goes = chance() < 0.15 ? 500 * chance() : undefined;
        world.at(0.1 * span * chance(), () => {
          const { driver } = world.call(call);
          if (goes !== undefined) world.at(world.now + goes, () => driver.onClientGone());
        });
      }
      world.runUntil(span + 60_000);
      expect(meter.inFlight).toBe(0);
    },
    250,
    [RATE_GROWS, OTHER_HOLDS_MOST],
  );
  expect(waited).toBeGreaterThan(1000);
});

test('equal seeds give equal runs', () => {
  check((given) => {
    expect(play(given).world.events).toEqual(play(given).world.events);
  }, 50);
});
