/**
 * No client is starved by costs. Clients always have requests waiting at a limit of 100 units a second; what these are charged, and
 * what responses name, is at most C. With at most m of its requests in flight, the next turn of a client ends within D = 1 + (m + 1) C
 * units of its own: one for the turn, the charge of its last request, and corrections of those in flight. So until it is served, another
 * client gets, by its weight, D units and the corrections of its own; and over any time its units exceed, by weight, those that another
 * client was charged by D for each of the two. A correction that comes after the turn it could bring forward is lost, so a
 * client may use less than it was charged.
 */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Gate } from '../../src/core/admission/gate.ts';
import { Ticket } from '../../src/core/admission/ticket.ts';
import type { CostRule } from '../../src/core/cost/cost-rule.ts';
import { RequestCosts } from '../../src/core/cost/request-costs.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { response, SHARED, upstreamSettings } from '../support/core/policy-builders.ts';

const C = 40;
const WAIT = 100_000_000;
/** Of each request, and so C, in tokens. */
const TOKENS_PER_POINT = 10;

/** Clients that always wait would send requests without a charge without end. */
const charge = fc.oneof(fc.constantFrom(2, 2, C), fc.double({ min: 2, max: C, noNaN: true }));
const named = fc.oneof(fc.constantFrom(0, 1, C), fc.double({ min: 0, max: C, noNaN: true }));
const clients = fc.array(
  fc.record({
    weight: fc.constantFrom(0.5, 1, 1, 2),
    /** Charges and named costs, in turn; a response without a cost leaves the charge. */
    charges: fc.array(charge, { minLength: 1, maxLength: 4 }),
    actual: fc.array(fc.option(named, { nil: undefined }), { minLength: 1, maxLength: 4 }),
    took: fc.array(fc.integer({ min: 10, max: 800 }), { minLength: 1, maxLength: 3 }),
    backlog: fc.integer({ min: 1, max: 4 }),
    /** It leaves with its requests whenever one was served, and returns at once. */
    leaves: fc.boolean(),
  }),
  { minLength: 2, maxLength: 4 },
);
const change = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('leave' as const), who: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('change unit' as const), who: fc.nat(3) }) },
);
const changes = fc.array(fc.tuple(fc.integer({ min: 0, max: 1500 }), change), { maxLength: 12 });

/** What one client, or the clients of one address, has got since the unit last changed. */
interface Share {
  readonly weight: number;
  /** Charges, corrected by what responses have named; and the larger of both. */
  used: number;
  charged: number;
  inFlight: number;
  mostInFlight: number;
  /** What all had used when it was last served. */
  usedBefore: readonly number[];
}

test.each([false, true])(
  'each client is served within a bound, and gets no more than its share of the units: addresses %s',
  (grouped) => {
    fc.assert(
      fc.property(clients, changes, (population, plan) => {
        let scale = 1;
        const unitName = () => (scale === 1 ? 'points' : 'tokens');
        const settings = () => {
          const rate = { initialRate: 100, maxRate: 100, minRate: 1, cooldown: 1000, unit: unitName() };
          return [upstreamSettings({ rate, queue: { maxWait: WAIT, maxDepth: 1000 } })];
        };
        const store = new MemoryStore({
          upstreams: settings(),
          maxTracked: 100,
          random: () => 0.5,
          listen: () => undefined,
        });
        const gate = new Gate(store, () => undefined);
        const limit = store.findLimit(SHARED)!;
        let now = 0;
        /** In the order of their times. */
        const events: { readonly at: number; readonly run: () => void }[] = [];
        // All clients but the last are of one address.
        const shareOf = (client: number): number => (grouped ? Number(client === population.length - 1) : client);
        const shares: Share[] = (grouped ? [1, 1] : population.map(({ weight }) => weight)).map((weight) => ({
          ...{ weight, used: 0, charged: 0, inFlight: 0, mostInFlight: 0, usedBefore: [] },
        }));
        const restart = (): void => {
          for (const share of shares) Object.assign(share, { used: 0, charged: 0, mostInFlight: share.inFlight });
          for (const share of shares) share.usedBefore = shares.map(() => 0);
        };
        restart();
        const waiting: Ticket[][] = population.map(() => []);
        const counts = population.map(() => 0);

        const send = (client: number, ticket: Ticket, at: number): void => {
          const { actual, leaves, took } = population[client]!;
          const share = shares[shareOf(client)]!;
          const number = counts[client]!;
          const units = ticket.costAt(limit)?.charged ?? 1;
          share.used += units;
          share.charged += Math.max(1, units);
          share.inFlight += 1;
          share.mostInFlight = Math.max(share.mostInFlight, share.inFlight);
          share.usedBefore = shares.map(({ used }) => used);
          gate.onSent(ticket, at);
          const receive = (): void => {
            share.inFlight -= 1;
            gate.onOutcome(ticket, response(200), now);
            gate.onAttemptEnd(ticket, now);
            const answer = actual[number % actual.length];
            const known = answer === undefined ? undefined : answer * scale;
            // Booked first: the settlement may serve the next request at once.
            const isCounted = known !== undefined && ticket.costAt(limit)?.isPaced === true;
            if (isCounted) {
              share.used += known - units;
              share.charged += Math.max(0, known - Math.max(1, units));
            }
            const isSettled = gate.costs.settle(ticket, new Map([['', known]]), now);
            expect(isSettled).toBe(isCounted);
            gate.onExchangeEnd(ticket);
          };
          events.push({ at: at + took[number % took.length]!, run: receive });
          if (leaves) events.push({ at: at + 1, run: () => leaveAndReturn(client) });
          events.sort((a, b) => a.at - b.at);
        };
        const arrive = (client: number): void => {
          const { weight, charges } = population[client]!;
          const rule: CostRule = { limit: '', expected: 1, min: 0, max: C * scale, isSettled: true, unit: unitName() };
          const onSettled = (_: unknown, at: number): void => {
            waiting[client] = waiting[client]!.filter((each) => each !== ticket);
            counts[client]! += 1;
            // The next one has arrived before: the client never stops waiting.
            arrive(client);
            send(client, ticket, at);
          };
          const addressGroup = grouped ? `address ${shareOf(client)}` : undefined;
          const own = grouped ? 1 : weight;
          const ticket: Ticket = new Ticket('up', `client ${client}`, own, [SHARED], onSettled, { addressGroup });
          const declared = charges[counts[client]! % charges.length]! * scale;
          ticket.costs = new RequestCosts('route', [rule], () => declared);
          waiting[client]!.push(ticket);
          if (gate.requestAdmission(ticket, now + WAIT, now)?.kind === 'admitted') onSettled(undefined, now);
        };
        const leaveAndReturn = (client: number): void => {
          const left = waiting[client]!.splice(0);
          for (const ticket of left) {
            gate.cancel(ticket, now);
            gate.onExchangeEnd(ticket);
          }
          for (const _ of left) arrive(client);
        };
        const bound = ({ mostInFlight }: Share): number => 1 + (mostInFlight + 1) * C * scale;
        const check = (): void => {
          for (const one of shares) {
            for (const [i, other] of shares.entries()) {
              if (one === other) continue;
              const since = other.used - one.usedBefore[i]!;
              const mostSince = (other.weight / one.weight) * bound(one) + bound(other);
              const most = one.charged / one.weight + bound(one) / one.weight + bound(other) / other.weight;
              // An assertion for each would take most of the time.
              if (since > mostSince) expect(since).toBeLessThanOrEqual(mostSince);
              if (other.used / other.weight > most) expect(other.used / other.weight).toBeLessThanOrEqual(most);
            }
          }
        };
        const advanceTo = (time: number): void => {
          for (;;) {
            const at = Math.min(gate.nextWake() ?? Infinity, events[0]?.at ?? Infinity);
            if (at > time) break;
            now = Math.max(now, at);
            if ((events[0]?.at ?? Infinity) <= now) events.shift()?.run();
            else gate.wake(now);
            check();
          }
          now = time;
        };

        for (const [client, { backlog }] of population.entries()) for (let i = 0; i <= backlog; i += 1) arrive(client);
        for (const [after, { do: action, who }] of plan) {
          advanceTo(now + after);
          if (action === 'change unit') {
            scale = scale === 1 ? TOKENS_PER_POINT : 1;
            restart();
            store.configure(settings(), 100);
            gate.reevaluateQueues(now);
          } else {
            const client = who % population.length;
            leaveAndReturn(client);
          }
          check();
        }
        advanceTo(now + 6000);
      }),
      { numRuns: 40 },
    );
  },
);
