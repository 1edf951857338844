/** Whole exchanges at a gate with calendar quotas, in virtual time, with failures, retries, departures and ends of periods. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CalendarQuotaSettings } from '../../src/core/quota/calendar/calendar-quota.ts';
import type { AttemptOutcome } from '../../src/core/exchange/attempt-outcome.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { failure, response, retryPolicy, SHARED } from '../support/core/policy-builders.ts';
import { HOUR, UTC_HOUR } from '../support/core/quota-builders.ts';
import { World } from '../support/core/world.ts';

const ROLLING = 60_000;

const OUTCOMES: readonly AttemptOutcome[] = [
  response(200),
  response(200),
  response(429),
  response(503),
  failure('connect', false),
  failure('reset', true),
];

const setting = fc.record({
  seed: fc.integer({ min: 0, max: 2 ** 31 }),
  scope: fc.constantFrom('upstream', 'client'),
  limit: fc.integer({ min: 1, max: 40 }),
  rollingLimit: fc.integer({ min: 1, max: 20 }),
  hasReserve: fc.boolean(),
  pace: fc.constantFrom('even', 'asNeeded'),
  maxWait: fc.constantFrom(0, 1000, 20_000),
  calls: fc.integer({ min: 1, max: 120 }),
  span: fc.constantFrom(100, 10_000, 150_000),
} as const);

test('no period has more attempts than its quota, whatever happens', () => {
  fc.assert(
    fc.property(setting, ({ seed, scope, limit, rollingLimit, hasReserve, pace, maxWait, calls, span }) => {
      const random = seededRandom(seed);
      const base = { reserve: 0, pace } as const;
      const quotas: CalendarQuotaSettings[] = [
        { ...base, name: 'hour', limit, period: UTC_HOUR, reserve: hasReserve ? Math.floor(limit / 3) : 0 },
        { ...base, name: 'rolling', limit: rollingLimit, period: { kind: 'rolling', length: ROLLING } },
      ];
      const sent: number[] = [];
      const upstream = { quotas, scope, queue: { maxWait, maxDepth: 1000 } };
      const world: World = new World({
        upstream,
        random,
        respond: ({ at }) => {
          const outcome = OUTCOMES[Math.floor(random() * OUTCOMES.length)] ?? response(200);
          // Nothing of it counts for the upstream.
          if (outcome.kind !== 'error' || outcome.sent) sent.push(at);
          return { outcome, after: Math.floor(random() * 2000) };
        },
      });
      world.now = HOUR - span / 2; // an hour ends in the middle
      for (let i = 0; i < calls; i += 1) {
        const client = `c${Math.floor(random() * 5)}`;
        const refs = scope === 'client' ? [{ ...SHARED, scope, key: client }] : [SHARED];
        world.at(world.now + random() * span, () => {
          world.call({
            client,
            weight: random() < 0.3 ? 4 : 1,
            refs,
            // Its body is read after its admission: until then, it holds what it has reserved.
            ...(random() < 0.5 ? { facts: { expectsContinue: true }, upload: 3000 * random() } : {}),
            policy: {
              retry: retryPolicy({ attempts: 3, unkeyedWrites: 'always' }),
              timeout: 30_000,
              perTryTimeout: 5000,
            },
          });
        });
      }
      world.runUntil(HOUR + span + 120_000);
      for (const hour of [0, 1]) {
        expect(sent.filter((at) => Math.floor(at / HOUR) === hour).length).toBeLessThanOrEqual(limit);
      }
      for (const end of sent) {
        expect(sent.filter((at) => at <= end && at > end - ROLLING).length).toBeLessThanOrEqual(rollingLimit);
      }
      // Nothing stays reserved: what is counted is what was sent.
      const [hour] = world.gate.view(world.now).quotas ?? [];
      expect(hour?.remaining).toBe(Math.max(0, limit - sent.filter((at) => at >= HOUR).length));
    }),
    { numRuns: 300 },
  );
});
