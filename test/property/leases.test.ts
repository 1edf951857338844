/** One lease server and any number of distant, failing clients send together no more than one process would. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Millis } from '../../src/core/scalars.ts';
import { compileScenario } from '../../src/simulator/scenario-file/compile-scenario.ts';
import { Simulator } from '../../src/simulator/engine/simulator.ts';
import { makeSimulatedLeasing } from '../../src/simulator/sharing/simulated-leasing.ts';
import { BLOCK_CAUSES } from '../../src/core/rate/breaker/active-block.ts';
import { ATTRIBUTE_COUNT } from '../../src/core/rate/breaker/request-attributes.ts';
import { WORKER_LEASE_TIMING } from '../../src/sharing/workers/lease-timing.ts';
import { UsageLog } from '../../src/sharing/protocol/usage-log.ts';
import { replayUsage } from '../../src/sharing/protocol/usage-replay.ts';
import type { UsageHandler } from '../../src/sharing/protocol/usage-replay.ts';
import { loadLibraryScenario } from '../support/core/scenario-library.ts';

const DURATION = 4000;

test('in any interval, the sends do not exceed the rate plus the allowed lateness', () => {
  const runs = fc.record({
    replicas: fc.integer({ min: 1, max: 6 }),
    latency: fc.double({ min: 0, max: 4, noNaN: true }),
    rate: fc.integer({ min: 3, max: 400 }),
    load: fc.double({ min: 0.3, max: 3, noNaN: true }),
    clients: fc.integer({ min: 1, max: 12 }),
    maxWait: fc.integer({ min: 10, max: 1000 }),
    deathAt: fc.option(fc.integer({ min: 100, max: DURATION }), { nil: undefined }),
    errors: fc.double({ min: 0, max: 0.2, noNaN: true }),
    seed: fc.nat(),
  });
  const config = loadLibraryScenario('known-limit');
  const [group] = config.clients;
  if (group === undefined) throw new Error('no demand');
  fc.assert(
    fc.property(runs, ({ replicas, latency, rate, load, clients, maxWait, deathAt, errors, seed }) => {
      const scenario = compileScenario('leases', {
        ...config,
        duration: DURATION,
        warmup: 0,
        replicas,
        clients: [{ ...group, count: clients, total: rate * load }],
        upstream: {
          ...config.upstream,
          limit: { kind: 'unlimited' },
          steps: [],
          errors: [{ probability: errors, status: 500 }],
        },
        policy: {
          ...config.policy,
          queue: { ...config.policy.queue, maxWait },
          rateLimit: { ...config.policy.rateLimit, initialRate: rate, maxRate: rate },
        },
      });
      const deaths = new Map(deathAt === undefined ? [] : [[0, deathAt]]);
      const at: number[] = [];
      const observer = {
        onOffer: () => undefined,
        onUpstreamDecision: () => at.push(world.now()),
        onRequestEnd: () => undefined,
      };
      const world: Simulator = new Simulator({
        scenario,
        seed,
        observer,
        ...makeSimulatedLeasing(scenario, seed, { maxTracked: 1000, latency, deaths }),
      });
      world.run(DURATION, () => undefined);
      const late = WORKER_LEASE_TIMING.validFor + latency;
      const allowed = 1 + (rate * late) / 1000;
      expect(maxExcess(at, rate)).toBeLessThan(allowed + 1e-6); // by rounding
      if (load > 1.5 && deathAt === undefined && maxWait > 400 && rate > 20) {
        expect(at.length).toBeGreaterThan((0.9 * (rate * DURATION)) / 1000);
      }
    }),
    { numRuns: 50 },
  );
});

/** Returns by how much, in any interval between two sends, the sends after the first exceed the rate times its length. */
function maxExcess(at: readonly Millis[], rate: number): number {
  let excess = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const [index, time] of at.entries()) {
    const ahead = index - (rate * time) / 1000;
    least = Math.min(least, ahead);
    excess = Math.max(excess, ahead - least);
  }
  return excess;
}

const WRITTEN_AS = new Map([
  ['noteQuota', 'quota'],
  ['resumeQuota', 'quotaSpent'],
  ['disownQuota', 'quotaDisowned'],
  ['resumeBlock', 'blocked'],
  ['remember', 'rateRemembered'],
  ['stop', 'stopped'],
  ['abandonProbe', 'probeAbandoned'],
]);

test('encoded messages decode to what was encoded', () => {
  const time = fc.double({ min: 0, max: 1e12, noNaN: true });
  const maybe = fc.option(time, { nil: undefined });
  const numbers = fc.array(fc.nat(), { minLength: ATTRIBUTE_COUNT, maxLength: ATTRIBUTE_COUNT });
  const source = fc.option(numbers, { nil: undefined });
  const block = fc
    .record({
      cause: fc.constantFrom(...BLOCK_CAUSES),
      scope: numbers,
      probeAt: time,
      heldClient: fc.nat(),
      heldClientUntil: time,
    })
    .map((reported) => ({ ...reported, since: 0, isPartial: false, expectedAt: reported.probeAt }));
  const happening = fc.oneof(
    fc.constant(['tokenReturned'] as const),
    fc.tuple(fc.constant('sent' as const), fc.nat(), time),
    fc.tuple(fc.constant('ended' as const), time),
    fc.tuple(fc.constant('accepted' as const), time, fc.nat(), time),
    fc.tuple(
      fc.constant('rejected' as const),
      fc.record({
        sentAt: time,
        inFlightAtSend: fc.nat(),
        retryAfterMs: maybe,
        activeClients: fc.nat(),
        overrun: fc.boolean(),
        attributes: source,
      }),
      time,
    ),
    fc.tuple(
      fc.constant('failed' as const),
      fc.record({
        sentAt: time,
        retryAfterMs: maybe,
        overrun: fc.boolean(),
        isUnreachable: fc.boolean(),
        attributes: source,
      }),
      time,
    ),
    fc.tuple(fc.constant('abandoned' as const), time, time),
    fc.tuple(fc.constant('probed' as const), time),
    fc.tuple(fc.constant('blockBypassed' as const), time),
    fc.tuple(fc.constant('resumeBlock' as const), block, fc.constant(0)),
    fc.tuple(
      fc.constant('noteQuota' as const),
      fc.record({ remaining: fc.nat(), limit: maybe, resetIn: maybe, window: maybe }),
      time,
      time,
      fc.record({ credential: maybe, client: maybe }),
    ),
    fc.tuple(
      fc.constant('resumeQuota' as const),
      fc.record({ until: time, credential: maybe, client: maybe, isCommon: fc.boolean(), isSpent: fc.boolean() }),
      time,
    ),
    fc.tuple(fc.constant('disownQuota' as const), fc.boolean(), time),
    fc.tuple(fc.constant('stop' as const), time),
    fc.tuple(fc.constant('remember' as const), time, time),
    fc.constant(['abandonProbe'] as const),
    fc.tuple(fc.constant('tokenUnused' as const), time),
    fc.tuple(fc.constant('epochSeen' as const), fc.nat()),
  );
  fc.assert(
    fc.property(fc.array(happening), (happenings) => {
      const log = new UsageLog();
      for (const [kind, ...facts] of happenings) {
        const write: unknown = Reflect.get(log, WRITTEN_AS.get(kind) ?? kind);
        if (typeof write === 'function') Reflect.apply(write, log, facts);
      }
      const read: unknown[] = [];
      const reader = new Proxy({} as UsageHandler, {
        get:
          (_, kind) =>
          (...facts: unknown[]) =>
            read.push([kind, ...facts]),
      });
      replayUsage(log.take(), reader);
      expect(read).toEqual(happenings);
      expect(log.isEmpty).toBe(true);
    }),
  );
});

test('the log of an acceptance includes the attributes of the sender, if they are known', () => {
  const log = new UsageLog();
  const source = [1, 2, 3, 4, 5, 6, 7, 8];
  log.accepted(10, 11, 12, source);
  const read: unknown[] = [];
  const reader: Pick<UsageHandler, 'accepted'> = { accepted: (...facts) => void read.push(facts) };
  replayUsage(log.take(), reader as UsageHandler);
  expect(read).toEqual([[10, 11, 12, source]]);
});

test('a log that no encoder wrote is rejected', () => {
  expect(() => replayUsage([99], {} as UsageHandler)).toThrow(RangeError);
});
