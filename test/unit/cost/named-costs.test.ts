import { describe, expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { CostRule } from '../../../src/core/cost/cost-rule.ts';
import { RequestCosts } from '../../../src/core/cost/request-costs.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { failure, response, SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const RULE: CostRule = { limit: '', expected: 1, min: 0, max: 1e6, isSettled: false };

/** A gate with one limit, whose requests may name their cost. */
function openGate(initialRate?: number, isSettled = false) {
  const rate = { initialRate, maxRate: Infinity, minRate: 0.01, cooldown: 1000 };
  const upstreams = [upstreamSettings({ rate, queue: { maxWait: 60_000, maxDepth: 1000 } })];
  const store = new MemoryStore({ upstreams, maxTracked: 100, random: () => 0.5, listen: () => undefined });
  const gate = new Gate(store, () => undefined);
  const limit = store.findLimit(SHARED)!;
  const send = (now: number, named: number | undefined): Ticket => {
    const ticket = new Ticket('up', 'a', 1, [SHARED], () => undefined);
    ticket.costs = new RequestCosts('route', [{ ...RULE, isSettled }], () => named);
    gate.requestAdmission(ticket, now + 60_000, now);
    gate.onSent(ticket, now);
    return ticket;
  };
  const answer = (ticket: Ticket, status: number, now: number): void => {
    gate.onOutcome(ticket, response(status), now);
    gate.onAttemptEnd(ticket, now);
  };
  return { gate, limit, store, send, answer };
}

describe('a cost that a request names', () => {
  test('makes the first cut find no rate beyond ten times what others cost', () => {
    const { limit, send, answer } = openGate();
    for (let now = 0; now < 1000; now += 50) answer(send(now, now === 500 ? 1e6 : 1), 200, now);
    answer(send(1000, 1), 429, 1001);
    expect(limit.meter.rate(1001)).toBeLessThan(100);
  });

  test('lowers the rate by a rejection no further because it names a million', () => {
    const rateAfter = (named: number): number => {
      const { limit, send, answer } = openGate(100);
      for (let second = 0; second < 20; second += 1) {
        for (let i = 0; i < 50; i += 1) answer(send(1000 * second + 20 * i, 1), 200, 1000 * second + 20 * i + 5);
        answer(send(1000 * second + 999, named), 429, 1000 * second + 999);
      }
      return limit.meter.rate(20_000);
    };
    expect(rateAfter(1e6)).toBeGreaterThan(0.9 * rateAfter(30));
  });

  test('is not taken for the mean cost before a response has named one', () => {
    const { limit, send } = openGate(100, true);
    send(0, 1e6);
    expect(limit.meter.meanCost).toBe(RULE.expected);
  });

  test('leaves nothing in the history of a limit if the request was not sent', () => {
    const { gate, limit, send, answer } = openGate();
    const unsent = send(0, 1e6);
    gate.onOutcome(unsent, failure('connect', false), 1);
    gate.onAttemptEnd(unsent, 1);
    for (let now = 50; now < 1000; now += 50) answer(send(now, 1), 200, now);
    answer(send(1000, 1), 429, 1001);
    expect(limit.meter.rate(1001)).toBeGreaterThan(15);
    expect(limit.meter.rate(1001)).toBeLessThan(25);
  });
});

test('costs that become known while an operator has pinned the rate are not paid at the learned rate', () => {
  const { gate, limit, store, send } = openGate(10, true);
  store.applyOverride('up', { action: 'pin', rate: 1000 }, 0);
  for (let i = 0; i < 20; i += 1) {
    const ticket = send(i * 1000, undefined);
    gate.onOutcome(ticket, response(200), i * 1000);
    gate.costs.settle(ticket, new Map([['', 900]]), i * 1000);
    gate.onAttemptEnd(ticket, i * 1000);
  }
  store.applyOverride('up', { action: 'unpin' }, 20_000);
  expect(limit.meter.delay(20_000)).toBe(0);
  send(20_000, undefined);
  expect(limit.meter.delay(20_000)).toBeLessThanOrEqual(1000 / 10);
  expect(limit.meter.carriedUnits).toBe(0);
  expect(limit.meter.meanCost).toBeGreaterThan(500);
});
