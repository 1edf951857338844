/** Whole exchanges at a gate with quotas of a class and its clients, in virtual time, with failures and retries. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AttemptOutcome } from '../../src/core/exchange/attempt-outcome.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import type { CallRecord, Send } from '../support/core/call-record.ts';
import { failure, response, retryPolicy } from '../support/core/policy-builders.ts';
import { HOUR, quotaSettings, UTC_HOUR } from '../support/core/quota-builders.ts';
import { World } from '../support/core/world.ts';

const CLIENTS = 4;

const OUTCOMES: readonly AttemptOutcome[] = [
  response(200),
  response(200),
  response(503),
  failure('connect', false),
  failure('reset', true),
];

const setting = fc.record({
  seed: fc.integer({ min: 0, max: 2 ** 31 }),
  upstreamLimit: fc.integer({ min: 1, max: 200 }),
  classLimit: fc.integer({ min: 1, max: 60 }),
  clientLimit: fc.integer({ min: 1, max: 30 }),
  maxWait: fc.constantFrom(0, 1000, 20_000),
  calls: fc.integer({ min: 1, max: 120 }),
  span: fc.constantFrom(100, 10_000, 150_000),
} as const);

/** When the first attempt of a call was sent that the upstream may have received; undefined if there is none. */
function countedAt({ sends }: CallRecord, unsent: ReadonlySet<Send>): number | undefined {
  return sends.find((send) => !unsent.has(send))?.at;
}

test('no hour has more requests of a client, or of its class, than its quota, however often they are retried', () => {
  fc.assert(
    fc.property(setting, ({ seed, upstreamLimit, classLimit, clientLimit, maxWait, calls, span }) => {
      const random = seededRandom(seed);
      const hourly = (name: string, limit: number) => quotaSettings({ name, limit, period: UTC_HOUR });
      const upstream = {
        quotas: [hourly('hour', upstreamLimit)],
        classQuotas: [
          {
            className: 'partners',
            shared: [hourly('class:partners/hour', classLimit)],
            perClient: [hourly('class:partners/client/hour', clientLimit)],
          },
        ],
        queue: { maxWait, maxDepth: 1000 },
      };
      const unsent = new Set<Send>();
      const world: World = new World({
        upstream,
        random,
        respond: (send) => {
          const outcome = OUTCOMES[Math.floor(random() * OUTCOMES.length)] ?? response(200);
          if (outcome.kind === 'error' && !outcome.sent) unsent.add(send);
          return { outcome, after: Math.floor(random() * 2000) };
        },
      });
      world.now = HOUR - span / 2; // an hour ends in the middle
      const records: { readonly client: string; readonly record: CallRecord }[] = [];
      for (let i = 0; i < calls; i += 1) {
        const client = `c${Math.floor(random() * CLIENTS)}`;
        world.at(world.now + random() * span, () => {
          const policy = { retry: retryPolicy({ attempts: 3 }), timeout: 30_000, perTryTimeout: 5000 };
          const record = world.call({ client, className: 'partners', isProven: true, policy });
          records.push({ client, record });
        });
      }
      world.runUntil(HOUR + 10 * 60_000);
      for (const hour of [0, 1]) {
        const inHour = records.filter(({ record }) => Math.floor((countedAt(record, unsent) ?? -HOUR) / HOUR) === hour);
        expect(inHour.length).toBeLessThanOrEqual(Math.min(classLimit, upstreamLimit));
        for (let i = 0; i < CLIENTS; i += 1) {
          expect(inHour.filter(({ client }) => client === `c${i}`).length).toBeLessThanOrEqual(clientLimit);
        }
      }
      const [, ofClass] = world.gate.view(world.now).quotas ?? [];
      const counted = records.filter(({ record }) => (countedAt(record, unsent) ?? 0) >= HOUR);
      expect(ofClass?.remaining).toBe(classLimit - counted.length);
    }),
    { numRuns: 150 },
  );
});
