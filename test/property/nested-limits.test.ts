/** Requests under limits in all combinations: each takes a token of all of its limits or of none, and no limit lets more go. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { ofClass } from '../../src/core/limits/limit-ref.ts';
import type { NestedSettings } from '../../src/store/upstream-nested-limits.ts';
import type { Standing } from '../support/policy.ts';
import { limitedTo, SHARED, World } from '../support/policy.ts';

const ref = (nested: string, key = ''): LimitRef => ({ upstream: 'up', nested, scope: 'upstream', key });
const known = (rate: number) => ({ initialRate: rate, maxRate: rate, minRate: 0.1, cooldown: 1000 });

/** Ways to stand under limits, outermost first. */
const STANDS: readonly (readonly LimitRef[])[] = [
  [SHARED],
  [SHARED, ref('endpoint', 'a')],
  [SHARED, ref('endpoint', 'b')],
  [SHARED, ref('write')],
  [SHARED, ref('write'), ref('endpoint', 'a')],
  [SHARED, ref(ofClass('batch')), ref('endpoint', 'a')],
  [SHARED, ref(ofClass('batch')), ref('write'), ref('endpoint', 'b')],
];

const rate = fc.integer({ min: 2, max: 60 });
const arrivals = fc.array(
  fc.record({
    after: fc.integer({ min: 0, max: 60 }),
    client: fc.constantFrom('x', 'y', 'z'),
    stand: fc.nat(STANDS.length - 1),
    ends: fc.constantFrom('sent', 'sent', 'sent', 'given up'),
  }),
  { minLength: 1, maxLength: 60 },
);

test('no limit lets more go than its rate, whoever else waits for what', () => {
  fc.assert(
    fc.property(rate, rate, rate, rate, arrivals, (outer, endpoint, write, batch, calls) => {
      const nested: NestedSettings[] = [
        { name: ofClass('batch'), scope: 'upstream', isKeyed: false, rate: known(batch) },
        { name: 'write', scope: 'upstream', isKeyed: false, rate: known(write) },
        { name: 'endpoint', scope: 'upstream', isKeyed: true, rate: known(endpoint) },
      ];
      const world = new World({ upstream: { ...limitedTo(outer), nested }, random: () => 0.5 });
      const rates: Record<string, number> = { '': outer, endpoint, write, [ofClass('batch')]: batch };
      const standings: { standing: Standing; refs: readonly LimitRef[] }[] = [];
      let at = 0;
      for (const { after, client, stand, ends } of calls) {
        at += after;
        world.at(at, () => {
          const refs = STANDS[stand]!;
          const standing = world.arrive({ client, refs, deadline: world.now + 3000 });
          if (ends === 'sent') standings.push({ standing, refs });
          else world.gate.cancel(standing.ticket, world.now);
        });
      }
      world.runUntil(at + 5000);

      const taken = new Map<string, { name: string; times: number[] }>();
      for (const { standing, refs } of standings) {
        expect(standing.told).toBeDefined(); // nobody is forgotten
        if (standing.told?.kind !== 'admitted') {
          expect(standing.ticket.admitted).toEqual([]);
          continue;
        }
        expect(standing.ticket.admitted.map(({ ref: { nested: name, key } }) => [name, key])).toEqual(
          refs.map(({ nested: name, key }) => [name, key]),
        );
        for (const { nested: name, key } of refs) {
          const entry = taken.get(`${name} ${key}`) ?? { name, times: [] };
          taken.set(`${name} ${key}`, entry);
          entry.times.push(standing.at);
        }
      }
      for (const { name, times } of taken.values()) {
        const sorted = times.toSorted((a, b) => a - b);
        // Spaced by its rate, but for the tolerance of the pacer.
        for (const [i, time] of sorted.entries()) {
          const expected = sorted[0]! + (1000 * i) / rates[name]!;
          expect(time).toBeGreaterThanOrEqual(expected - 11);
        }
      }
    }),
    { numRuns: 150 },
  );
});

test('all who wait are served or told within their time, and nothing is left of them', () => {
  fc.assert(
    fc.property(rate, rate, arrivals, (outer, endpoint, calls) => {
      const nested: NestedSettings[] = [
        { name: ofClass('batch'), scope: 'upstream', isKeyed: false, rate: known(3) },
        { name: 'write', scope: 'upstream', isKeyed: false, rate: known(5) },
        { name: 'endpoint', scope: 'upstream', isKeyed: true, rate: known(endpoint) },
      ];
      const world = new World({ upstream: { ...limitedTo(outer), nested }, random: () => 0.5 });
      const standings: Standing[] = [];
      let at = 0;
      for (const { after, client, stand } of calls) {
        at += after;
        world.at(at, () => void standings.push(world.arrive({ client, refs: STANDS[stand]! })));
      }
      world.runUntil(at + 10_000);
      expect(standings.filter(({ told }) => told === undefined)).toEqual([]);
      for (const { queue, queuedWithin, isMixed } of world.store.limits()) {
        expect([queue.size, queuedWithin?.size ?? 0, isMixed]).toEqual([0, 0, false]);
      }
      expect(world.store.upstream('up').backlog.size).toBe(0);
    }),
    { numRuns: 150 },
  );
});
