import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Gate } from '../../src/core/admission/gate.ts';
import { Ticket } from '../../src/core/admission/ticket.ts';
import type { CostRule } from '../../src/core/cost/cost-rule.ts';
import { RequestCosts } from '../../src/core/cost/request-costs.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { failure, response, SHARED, upstreamSettings } from '../support/core/policy-builders.ts';

const RULE: CostRule = { limit: '', expected: 3, min: 0, max: 1000, isSettled: true, unit: 'points' };
/** What a request or a response may name: any number at all. */
const named = fc.oneof(
  fc.double(),
  fc.integer({ min: 0, max: 2000 }),
  fc.constantFrom(Number.NaN, Infinity, -Infinity, -1, 1e308),
);
const outcome = fc.constantFrom(
  response(200),
  response(429),
  response(503),
  response(429, { retryAfterMs: 2000 }),
  failure('connect', false),
  failure('aborted', true),
  'cancelled' as const,
);
const calls = fc.array(
  fc.record({
    after: fc.integer({ min: 0, max: 300 }),
    client: fc.constantFrom('a', 'b', 'c'),
    group: fc.constantFrom(undefined, 'address'),
    declared: fc.option(named, { nil: undefined }),
    actual: named,
    took: fc.integer({ min: 1, max: 500 }),
    outcome,
    /** When the client leaves, if the request still waits then. */
    leavesAfter: fc.option(fc.integer({ min: 0, max: 500 }), { nil: undefined }),
    before: fc.option(fc.constantFrom('pin', 'unpin', 'new unit', 'former unit'), { nil: undefined, freq: 8 }),
  }),
  { maxLength: 60 },
);

test('no cost makes a wait, a rate or a Retry-After something else than a number, or holds back a limit for good', () => {
  fc.assert(
    fc.property(calls, (all) => {
      const settingsOf = (unit: string) => {
        const rate = { initialRate: 20, maxRate: Infinity, minRate: 1, cooldown: 1000, unit };
        return [upstreamSettings({ rate, queue: { maxWait: 2000, maxDepth: 100 } })];
      };
      const upstreams = settingsOf('points');
      const store = new MemoryStore({ upstreams, maxTracked: 100, random: () => 0.5, listen: () => undefined });
      const gate = new Gate(store, () => undefined);
      const limit = store.findLimit(SHARED)!;
      const events: { at: number; run: () => void }[] = [];
      let now = 0;
      const advanceTo = (time: number): void => {
        for (;;) {
          const wake = gate.nextWake() ?? Infinity;
          events.sort((a, b) => a.at - b.at);
          const at = Math.min(wake, events[0]?.at ?? Infinity);
          if (!(at <= time)) break;
          now = Math.max(now, at);
          if (wake <= now) gate.wake(now);
          while ((events[0]?.at ?? Infinity) <= now) events.shift()?.run();
        }
        now = time;
      };
      for (const { after, client, group, declared, actual, took, outcome: result, leavesAfter, before } of all) {
        advanceTo(now + after);
        if (before === 'pin') store.applyOverride('up', { action: 'pin', rate: 7 }, now);
        else if (before === 'unpin') store.applyOverride('up', { action: 'unpin' }, now);
        else if (before !== undefined) {
          store.configure(settingsOf(before === 'new unit' ? 'tokens' : 'points'), 100);
          gate.reevaluateQueues(now);
        }
        const send = (ticket: Ticket, at: number): void => {
          if (result === 'cancelled') return gate.cancel(ticket, at);
          gate.onSent(ticket, at);
          events.push({
            at: at + took,
            run: () => {
              gate.onOutcome(ticket, result, now);
              gate.onAttemptEnd(ticket, now);
              gate.onExchangeEnd(ticket);
              gate.costs.settle(ticket, new Map([['', actual]]), now); // its body has been parsed
            },
          });
        };
        const ticket: Ticket = new Ticket(
          'up',
          client,
          1,
          [SHARED],
          (admission, at) => {
            if (admission.kind === 'admitted') send(ticket, at);
            else gate.onExchangeEnd(ticket);
          },
          { addressGroup: group },
        );
        ticket.costs = new RequestCosts('route', [RULE], () => declared);
        const admission = gate.requestAdmission(ticket, now + 10_000, now);
        if (admission === undefined && leavesAfter !== undefined) {
          const leave = (): void => {
            if (ticket.waitingLimit === undefined) return;
            gate.cancel(ticket, now);
            gate.onExchangeEnd(ticket);
          };
          events.push({ at: now + leavesAfter, run: leave });
        }
        expect(ticket.estimatedWait ?? 0).toBeLessThan(1_000_000);
        if (admission?.kind === 'admitted') send(ticket, now);
        else if (admission?.kind === 'refused') {
          expect(admission.retryAfterMs).toBeGreaterThanOrEqual(0);
          expect(admission.retryAfterMs).toBeLessThan(400_000);
          gate.onExchangeEnd(ticket);
        }
        expect(ticket.costAt(limit)?.charged ?? 1).toBeGreaterThanOrEqual(0);
        expect(ticket.costAt(limit)?.charged ?? 1).toBeLessThanOrEqual(1000);
        expect(limit.meter.rate(now)).toBeGreaterThan(0);
        expect(Number.isFinite(limit.queue.virtualTime)).toBe(true);
        expect(limit.meter.meanCost).toBeLessThanOrEqual(1000);
        expect(limit.lastReturnSlot).toBeLessThan(now + 400_000);
      }
      advanceTo(now + 700_000);
      expect(limit.queue.size).toBe(0);
      if (limit.meter.phase !== 'blocked') expect(limit.meter.delay(now)).toBe(0);
    }),
    { numRuns: 150 },
  );
});
