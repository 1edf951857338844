/**
 * Requests under limits in all combinations: each takes a token of all of its limits or of none, and no limit exceeds its
 * rate.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { classLimitName } from '../../src/core/limits/limit-ref.ts';
import type { NestedLimitSettings } from '../../src/store/upstream-nested-limits.ts';
import type { QueuedTicket } from '../support/core/call-record.ts';
import { limitedTo, SHARED } from '../support/core/policy-builders.ts';
import { World } from '../support/core/world.ts';

const ref = (nested: string, key = ''): LimitRef => ({ upstream: 'up', nested, scope: 'upstream', key });
const known = (rate: number) => ({ initialRate: rate, maxRate: rate, minRate: 0.1, cooldown: 1000 });

/** Combinations of limits, outermost first. */
const LIMIT_SETS: readonly (readonly LimitRef[])[] = [
  [SHARED],
  [SHARED, ref('endpoint', 'a')],
  [SHARED, ref('endpoint', 'b')],
  [SHARED, ref('write')],
  [SHARED, ref('write'), ref('endpoint', 'a')],
  [SHARED, ref(classLimitName('batch')), ref('endpoint', 'a')],
  [SHARED, ref(classLimitName('batch')), ref('write'), ref('endpoint', 'b')],
];

const rate = fc.integer({ min: 2, max: 60 });
const arrivals = fc.array(
  fc.record({
    after: fc.integer({ min: 0, max: 60 }),
    client: fc.constantFrom('x', 'y', 'z'),
    limitSet: fc.nat(LIMIT_SETS.length - 1),
    ends: fc.constantFrom('sent', 'sent', 'sent', 'given up'),
  }),
  { minLength: 1, maxLength: 60 },
);

test('no limit exceeds its rate, whatever other limits its requests wait for', () => {
  fc.assert(
    fc.property(rate, rate, rate, rate, arrivals, (outer, endpoint, write, batch, calls) => {
      const nested: NestedLimitSettings[] = [
        { name: classLimitName('batch'), scope: 'upstream', isKeyed: false, rate: known(batch) },
        { name: 'write', scope: 'upstream', isKeyed: false, rate: known(write) },
        { name: 'endpoint', scope: 'upstream', isKeyed: true, rate: known(endpoint) },
      ];
      const world = new World({ upstream: { ...limitedTo(outer), nested }, random: () => 0.5 });
      const rates: Record<string, number> = { '': outer, endpoint, write, [classLimitName('batch')]: batch };
      const requests: { request: QueuedTicket; refs: readonly LimitRef[] }[] = [];
      let at = 0;
      for (const { after, client, limitSet, ends } of calls) {
        at += after;
        world.at(at, () => {
          const refs = LIMIT_SETS[limitSet]!;
          const request = world.arrive({ client, refs, deadline: world.now + 3000 });
          if (ends === 'sent') requests.push({ request, refs });
          else world.gate.cancel(request.ticket, world.now);
        });
      }
      world.runUntil(at + 5000);

      const taken = new Map<string, { name: string; times: number[] }>();
      for (const { request, refs } of requests) {
        expect(request.admission).toBeDefined(); // every request gets a decision
        if (request.admission?.kind !== 'admitted') {
          expect(request.ticket.reservedLimits).toEqual([]);
          continue;
        }
        expect(request.ticket.reservedLimits.map(({ ref: { nested: name, key } }) => [name, key])).toEqual(
          refs.map(({ nested: name, key }) => [name, key]),
        );
        for (const { nested: name, key } of refs) {
          const entry = taken.get(`${name} ${key}`) ?? { name, times: [] };
          taken.set(`${name} ${key}`, entry);
          entry.times.push(request.at);
        }
      }
      for (const { name, times } of taken.values()) {
        const sorted = times.toSorted((a, b) => a - b);
        // Spaced by the rate, except for the tolerance of the pacer.
        for (const [i, time] of sorted.entries()) {
          const expected = sorted[0]! + (1000 * i) / rates[name]!;
          expect(time).toBeGreaterThanOrEqual(expected - 11);
        }
      }
    }),
    { numRuns: 150 },
  );
});

test('every waiting request is served or refused in time, and leaves no state', () => {
  fc.assert(
    fc.property(rate, rate, arrivals, (outer, endpoint, calls) => {
      const nested: NestedLimitSettings[] = [
        { name: classLimitName('batch'), scope: 'upstream', isKeyed: false, rate: known(3) },
        { name: 'write', scope: 'upstream', isKeyed: false, rate: known(5) },
        { name: 'endpoint', scope: 'upstream', isKeyed: true, rate: known(endpoint) },
      ];
      const world = new World({ upstream: { ...limitedTo(outer), nested }, random: () => 0.5 });
      const requests: QueuedTicket[] = [];
      let at = 0;
      for (const { after, client, limitSet } of calls) {
        at += after;
        world.at(at, () => void requests.push(world.arrive({ client, refs: LIMIT_SETS[limitSet]! })));
      }
      world.runUntil(at + 10_000);
      expect(requests.filter(({ admission }) => admission === undefined)).toEqual([]);
      for (const { queue, nestedWithWaiters, hasMixedLimits } of world.store.limits()) {
        expect([queue.size, nestedWithWaiters?.size ?? 0, hasMixedLimits]).toEqual([0, 0, false]);
      }
      expect(world.store.upstream('up').queueOccupancy.size).toBe(0);
    }),
    { numRuns: 150 },
  );
});
