import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ClientSlot } from '../../src/core/admission/client-allowance.ts';
import type { ClientState } from '../../src/core/events/event-labels.ts';
import type { ProxyEvent } from '../../src/core/events/proxy-events.ts';
import type { Millis } from '../../src/core/scalars.ts';
import { ClientTable } from '../../src/store/clients/client-table.ts';

/** The reference model of one client. */
interface Client {
  readonly key: string;
  readonly slot: ClientSlot;
  users: number;
  arrivals: Millis[];
  cutTo: number;
  refusedAt: Millis;
  stillRefused: boolean;
  heldUntil: Millis;
}

function stateOf({ heldUntil, refusedAt, stillRefused }: Client, now: Millis): ClientState {
  if (heldUntil > now) return 'held';
  if (now - refusedAt < 2000) return stillRefused ? 'backoff' : 'cooldown';
  return now - refusedAt < 32_000 ? 'restoring' : 'normal';
}

function allowanceOf({ cutTo, refusedAt }: Client, now: Millis): number {
  const u = Math.min(30_000, Math.max(0, now - refusedAt - 2000));
  return 1 - (1 - cutTo) * (1 - u / 30_000) ** 3;
}

function demandOf({ arrivals }: Client, now: Millis): number {
  return arrivals.reduce((sum, at) => sum + 0.5 * Math.exp((at - now) / 2000), 0);
}

const after = fc.constantFrom(0, 0, 1, 300, 2000, 2001, 15_000, 31_000, 40_000);
const who = fc.nat(7);
const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('enter' as const), who, times: fc.constantFrom(1, 1, 12) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('leave' as const), who }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('refuse' as const), who, share: fc.constantFrom(0.1, 1, 5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('admit' as const), who }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('hold' as const), who, hold: fc.constantFrom(100, 5000, 300_000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('look' as const) }) },
);
const actions = fc.array(fc.tuple(after, action), { maxLength: 150, size: 'max' });

test('evicts, counts and reports the same clients as a plain list', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), actions, (maxTracked, sequence) => {
      const events: ProxyEvent[] = [];
      const reported = new Map<string, ClientState>();
      const table = new ClientTable(maxTracked, (event) => {
        events.push(event);
        if (event.type !== 'client-state') return;
        expect(reported.get(event.client) ?? 'normal').toBe(event.from);
        reported.set(event.client, event.to);
      });
      const clients: Client[] = [];
      let now = 0;

      const enter = (key: string): void => {
        const before = events.length;
        const slot = table.enter(`up\0${key}`, now);
        const evicted = events.slice(before).find((event) => event.type === 'client-evicted');
        const known = clients.find((client) => client.key === key);
        if (known === undefined) {
          const idle = clients.filter((client) => client.users === 0);
          expect(evicted !== undefined).toBe(clients.length === maxTracked && idle.length > 0);
          if (evicted !== undefined) {
            const gone = clients.find((client) => client.slot === slot)!;
            const isNormal = (client: Client) => stateOf(client, now) === 'normal';
            const calmAt = (client: Client) => Math.max(client.heldUntil, client.refusedAt + 32_000);
            expect(gone.users).toBe(0);
            expect(evicted.cause).toBe(idle.some(isNormal) ? 'calm' : 'troubled');
            expect(isNormal(gone)).toBe(evicted.cause === 'calm');
            if (evicted.cause === 'troubled') expect(calmAt(gone)).toBe(Math.min(...idle.map(calmAt)));
            clients.splice(clients.indexOf(gone), 1);
            reported.delete(gone.key);
          }
          if (slot === maxTracked) return table.leave(slot); // the slot shared by clients that found no room
          expect(clients.some((client) => client.slot === slot)).toBe(false);
          clients.push({
            key,
            slot,
            users: 0,
            arrivals: [],
            cutTo: 1,
            refusedAt: Number.NEGATIVE_INFINITY,
            stillRefused: false,
            heldUntil: Number.NEGATIVE_INFINITY,
          });
        }
        const client = clients.find((each) => each.key === key)!;
        expect(slot).toBe(client.slot);
        expect(table.previousArrival(slot)).toBe(client.arrivals.at(-1) ?? Number.NEGATIVE_INFINITY);
        client.arrivals.push(now);
        client.users += 1;
      };

      for (const [wait, each] of sequence) {
        now += wait;
        const client =
          'who' in each ? clients.find(({ key, users }) => key === String(each.who) && users > 0) : undefined;
        if (each.do === 'enter') for (let i = 0; i < each.times; i += 1) enter(String(each.who));
        else if (each.do === 'look') {
          const allowances = clients.map((one) => allowanceOf(one, now));
          const view = table.view(now);
          expect(view.tracked).toBe(clients.length);
          const byState = { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 };
          for (const one of clients) byState[stateOf(one, now)] += 1;
          expect(view.byState).toEqual(byState);
          expect(view.allowance.min).toBeCloseTo(Math.min(1, ...allowances), 9);
          const mean = allowances.reduce((sum, one) => sum + one, 0) / allowances.length;
          expect(view.allowance.mean).toBeCloseTo(allowances.length === 0 ? 1 : mean, 9);
          for (const one of clients) expect(reported.get(one.key) ?? 'normal').toBe(stateOf(one, now));
        } else if (client === undefined) continue;
        else if (each.do === 'leave') {
          table.leave(client.slot);
          client.users -= 1;
        } else if (each.do === 'refuse') {
          const demand = demandOf(client, now);
          if (Math.abs(demand - 3 * each.share) < 1e-9) continue; // too close to decide, by rounding
          const allowance = allowanceOf(client, now);
          const result = table.onRefused(client.slot, each.share, now);
          if (demand <= 3 * each.share) {
            expect(result).toBeUndefined();
            continue;
          }
          client.cutTo = Math.min(allowance, Math.max(1 / 16, (3 * each.share) / demand));
          client.refusedAt = now;
          client.stillRefused = true;
          if (result !== undefined) expect(result).toBeCloseTo(client.cutTo, 9);
          else expect(client.cutTo).toBeCloseTo(allowance, 9);
        } else if (each.do === 'admit') {
          table.onAdmitted(client.slot, now);
          client.stillRefused = false;
        } else {
          table.hold(client.slot, now + each.hold, now);
          client.heldUntil = Math.max(client.heldUntil, now + each.hold);
        }

        expect(clients.length).toBeLessThanOrEqual(maxTracked);
        for (const one of clients) {
          expect(table.allowance(one.slot, now)).toBeCloseTo(allowanceOf(one, now), 9);
          expect(table.demand(one.slot, now)).toBeCloseTo(demandOf(one, now), 9);
          expect(table.heldUntil(one.slot)).toBe(one.heldUntil);
        }
      }
    }),
    { numRuns: 100 },
  );
});
