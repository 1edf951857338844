import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { WaitingRequest } from '../support/core/connection-limited-gate.ts';
import { ConnectionLimitedGate } from '../support/core/connection-limited-gate.ts';
import { limitedTo, response } from '../support/core/policy-builders.ts';

type Act =
  | { readonly do: 'arrive'; readonly client: string }
  | { readonly do: 'send' | 'answer' | 'leave'; readonly which: number }
  | { readonly do: 'pass'; readonly time: number };

const client = fc.oneof(
  { weight: 5, arbitrary: fc.constant('a') }, // it may have to leave connections free
  { weight: 1, arbitrary: fc.constantFrom('b', 'c') },
);
const which = fc.nat(1000);
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('arrive' as const), client }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('send' as const), which }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('answer' as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), which }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), time: fc.nat(400) }) },
);

const upstream = fc.constantFrom(
  {},
  limitedTo(20),
  { scope: 'client' as const },
  { scope: 'client' as const, ...limitedTo(20) },
);

/** Few connections; or more, where a client may have to leave some free. */
const connections = fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 9, max: 12 }));

test('never exceeds the connections, queues no request that may take a free one, and answers every request', () => {
  fc.assert(
    fc.property(connections, upstream, fc.array(act, { maxLength: 120, size: 'max' }), (most, settings, acts) => {
      const at = new ConnectionLimitedGate(most, settings);
      at.tracksAttempts = true;
      const guests: WaitingRequest[] = [];
      const unsent = new Set<WaitingRequest>();
      const sent = new Set<WaitingRequest>();
      const pick = <T>(from: Iterable<T>, n: number): T | undefined => {
        const list = [...from];
        return list[n % Math.max(1, list.length)];
      };
      const act = (step: Act): void => {
        if (step.do === 'arrive') guests.push(at.arrive(step.client));
        if (step.do === 'pass') at.pass(step.time);
        if (step.do === 'send') {
          const guest = pick(unsent, step.which);
          if (guest !== undefined) at.send(guest);
          if (guest !== undefined) sent.add(guest);
        }
        if (step.do === 'answer') {
          const guest = pick(sent, step.which);
          if (guest !== undefined) sent.delete(guest);
          if (guest !== undefined) at.answer(guest, response(200));
        }
        if (step.do === 'leave') {
          const guest = pick(
            guests.filter((each) => each.admission === undefined || unsent.has(each)),
            step.which,
          );
          if (guest === undefined) return;
          at.gate.cancel(guest.ticket, at.now);
          at.gate.onExchangeEnd(guest.ticket);
          unsent.delete(guest);
          guests.splice(guests.indexOf(guest), 1);
        }
      };
      for (const step of acts) {
        act(step);
        for (const guest of at.admitted.splice(0)) if (guests.includes(guest)) unsent.add(guest);
        for (const guest of sent) unsent.delete(guest);
        const holders = unsent.size + sent.size;
        expect(holders).toBeLessThanOrEqual(most);
        const waiting = guests.filter(({ admission }) => admission === undefined);
        expect(at.gate.view(at.now).limits.reduce((sum, { queued }) => sum + queued, 0)).toBe(waiting.length);
        // Without a rate, requests wait only for a connection, or leave the free ones to others.
        if (settings.rate !== undefined || holders === most) continue;
        for (const { client } of waiting) {
          const held = [...unsent, ...sent].filter((each) => each.client === client).length;
          expect(held).toBeGreaterThanOrEqual(8 * (most - holders));
          expect(held).toBeGreaterThan(most / 3);
        }
      }
      at.pass(120_000);
      expect(guests.filter(({ admission }) => admission === undefined)).toEqual([]);
    }),
    { numRuns: 300 },
  );
});
