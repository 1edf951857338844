/** Whole exchanges at one gate, in virtual time, under whatever may happen to them. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { LocalMeter } from '../../src/core/limits/meter.ts';
import { RULES } from '../../src/core/rate/rules.ts';
import type { Millis, Outcome, Random } from '../../src/core/exchange/attempt-outcome.ts';
import { Concurrency } from '../../src/simulator/limit-models/concurrency.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import type { UpstreamSettings } from '../../src/store/memory-store.ts';
import type { Call, Reply, Story } from '../support/policy.ts';
import { failure, response, retryPolicy, SHARED, World } from '../support/policy.ts';

interface Setting {
  readonly seed: number;
  readonly upstream: Partial<UpstreamSettings>;
  readonly calls: number;
  /** Over how long they come. */
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

const OUTCOMES: readonly Outcome[] = [
  response(200),
  response(200),
  response(200),
  response(404),
  response(429),
  response(429, { retryAfter: 300 }),
  response(429, { retryAfter: 4000 }),
  response(429, { lock: true }),
  response(200, { quota: { remaining: 0, limit: 10, resetIn: 700, window: 1000 } }),
  response(200, { quota: { remaining: 2, limit: 10, resetIn: 900, window: undefined } }),
  response(500),
  response(503),
  response(503, { retryAfter: 1000 }),
  failure('connect', false),
  failure('reset', true),
];

function pick<T>(values: readonly T[], chance: Random): T {
  return values[Math.floor(chance() * values.length)]!;
}

/** An upstream in a mood that lasts for a while: sound, throttling, or broken. */
function moody(chance: Random): () => Reply {
  let left = 0;
  let mood = 0;
  return () => {
    if (left === 0) [left, mood] = [1 + Math.floor(20 * chance()), chance()];
    left -= 1;
    const after = 100 * chance() ** 3 * (chance() < 0.05 ? 100 : 1);
    if (chance() < 0.02) return 'silence';
    if (mood < 0.4) return { outcome: response(200), after };
    if (mood < 0.6) return { outcome: pick(OUTCOMES, chance), after };
    if (mood < 0.8) return { outcome: chance() < 0.8 ? response(429) : response(200), after };
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
    plan: {
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
  readonly stories: readonly Story[];
}

/** All calls, some of whose clients go, and some of which are told that the proxy goes; then time for all to end. */
function play({ seed, upstream, calls, span, clients, maxTracked }: Setting, onStep?: (world: World) => void): Played {
  const chance = seededRandom(seed);
  const world = new World({ upstream, seed: seed + 1, maxTracked, ...(onStep === undefined ? {} : { onStep }) });
  world.respond = moody(chance);
  const stories: Story[] = [];
  for (let i = 0; i < calls; i += 1) {
    const call = callOf(`client ${Math.floor(clients * chance())}`, upstream.scope ?? 'upstream', chance);
    const goes = chance() < 0.15 ? 1500 * chance() ** 2 : undefined;
    const drains = chance() < 0.05 ? 1000 * chance() : undefined;
    world.at(span * chance(), () => {
      const story = world.call(call);
      stories.push(story);
      if (goes !== undefined) world.at(world.now + goes, () => story.drive.gone());
      if (drains !== undefined) world.at(world.now + drains, () => story.drive.drain(world.now + 500));
    });
  }
  world.runUntil(span + 60_000);
  return { world, stories };
}

function check(property: (given: Setting) => void, numRuns = 250, known: readonly Setting[] = []): void {
  fc.assert(fc.property(setting, property), { numRuns, examples: known.map((each) => [each]) });
}

test('every exchange ends, in time, and leaves nothing behind', () => {
  check((given) => {
    const { world, stories } = play(given);
    expect(stories).toHaveLength(given.calls);
    for (const { call, drive, verdict, startedAt, endedAt } of stories) {
      expect(drive.isDone).toBe(true);
      expect(verdict).toBeDefined();
      // The deadline pauses during the upload; an attempt that is begun has a millisecond at the least.
      expect(endedAt - startedAt).toBeLessThanOrEqual(call.plan!.timeout! + (call.upload ?? 0) + 1.001);
    }
    for (const limit of world.store.limits()) {
      expect(limit.meter.inFlight).toBe(0);
      expect(limit.queue.size).toBe(0);
    }
    const queued = world.ofType('decision').filter(({ decision }) => decision === 'queued');
    expect(world.ofType('dequeued')).toHaveLength(queued.length);
    expect(world.ofType('retry-end').length).toBeLessThanOrEqual(stories.length);
  });
});

test('no queue is ever longer than its bound', () => {
  check((given) => {
    const bound = given.upstream.queue?.maxDepth ?? 0;
    let longest = 0;
    play(given, (world) => {
      for (const { queue } of world.store.limits()) longest = Math.max(longest, queue.size);
    });
    expect(longest).toBeLessThanOrEqual(bound);
  });
});

test('woken only when it asks to be, the gate lets nobody wait past its time', () => {
  check((given) => {
    const { world } = play(given, ({ gate, now }) => {
      const wake = gate.nextWake();
      if (wake !== undefined) expect(Number.isFinite(wake) && wake >= now - 1e-6).toBe(true);
    });
    // A client that keeps its promise is kept for a second longer.
    const longest = (given.upstream.queue?.maxWait ?? 0) + 1000;
    for (const { waited } of world.ofType('dequeued')) expect(waited).toBeLessThanOrEqual(longest + 1e-6);
  });
});

test('nothing is sent for a client before the time that the upstream asked it for', () => {
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
      return { outcome: response(429, { retryAfter }), after };
    };
    for (let i = 0; i < given.calls; i += 1) {
      world.at(given.span * chance(), () => {
        world.call({ client: `client ${Math.floor(given.clients * chance())}` });
      });
    }
    world.runUntil(given.span + 60_000);
  });
});

test('once the upstream is sound again, requests pass again', () => {
  check((given) => {
    const chance = seededRandom(given.seed);
    const world = new World({
      upstream: { ...given.upstream, queue: { maxWait: 1000, maxDepth: 100 } },
      seed: given.seed,
    });
    const mood = moody(chance);
    world.respond = (send) => (send.at < 10_000 ? mood() : { outcome: response(200), after: 5 });
    const scope = given.upstream.scope ?? 'upstream';
    const stories: Story[] = [];
    for (let at = 0; at < 40_000; at += chance() < 0.9 ? 400 * chance() : 3000) {
      const call = callOf('client', scope, chance);
      world.at(at, () => stories.push(world.call({ ...call, plan: { timeout: 3000, perTryTimeout: 2000 } })));
    }
    world.runUntil(60_000);
    // A probe that is out takes 2 s at most, the next is due within 6.25 s, and nobody is held for longer than 4 s. The
    // rate that it comes back to may be low, if next to nothing had been accepted before.
    for (const limit of world.store.limits()) expect(limit.isBlocked(world.now)).toBe(false);
    const late = stories.filter(({ startedAt }) => startedAt > 25_000);
    expect(late.some(({ status }) => status === 200)).toBe(true);
    const { rate } = given.upstream;
    if (rate !== undefined && rate.minRate > 10) expect(late.every(({ status }) => status === 200)).toBe(true);
  }, 60);
});

/** The rate grows as a request comes that is refused, while others wait: their wake was reckoned by the rate of before. */
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

test('nobody waits while a place in flight is free', () => {
  // Any rejection is believed to be for the number in flight.
  const rules = { ...RULES, watchPlaces: () => ({ accepted() {}, rejected: (among: number) => among, forget() {} }) };
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
          // After a failed probe, its address leaves the next one to others for a moment.
          const mayGo = queue.flows.some(({ head }) => head !== undefined && meter.delay(now, head.source) === 0);
          if (mayGo) expect(gate.nextWake()).toBeLessThanOrEqual(now);
          if (queue.size > 0) waited += 1;
        },
      });
      world.respond = () => {
        const after = 300 * chance();
        if (!places.arrive().accepted) return { outcome: response(429), after: 0 };
        world.at(world.now + after, () => places.leave());
        return { outcome: chance() < 0.8 ? response(200) : pick(OUTCOMES, chance), after };
      };
      for (let i = 0; i < calls; i += 1) {
        const call = callOf(`client ${Math.floor(clients * chance())}`, 'upstream', chance);
        const goes = chance() < 0.15 ? 500 * chance() : undefined;
        world.at(0.1 * span * chance(), () => {
          const { drive } = world.call(call);
          if (goes !== undefined) world.at(world.now + goes, () => drive.gone());
        });
      }
      world.runUntil(span + 60_000);
      expect(meter.inFlight).toBe(0);
    },
    250,
    [RATE_GROWS],
  );
  expect(waited).toBeGreaterThan(1000);
});

test('equal seeds give equal runs of everything', () => {
  check((given) => {
    expect(play(given).world.events).toEqual(play(given).world.events);
  }, 50);
});
