import { describe, expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { CostRule } from '../../../src/core/cost/cost-rule.ts';
import { RequestCosts } from '../../../src/core/cost/request-costs.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { failure, response, SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const RULE: CostRule = { limit: '', expected: 10, min: 0, max: 1000, isSettled: true };
const KNOWN_RATE = { initialRate: 100, maxRate: 100, minRate: 1, cooldown: 1000 };

/** A gate with a limit of 100 units a second. */
function openGate() {
  const upstreams = [upstreamSettings({ rate: KNOWN_RATE, queue: { maxWait: 60_000, maxDepth: 1000 } })];
  const store = new MemoryStore({ upstreams, maxTracked: 100, random: () => 0.5, listen: () => undefined });
  const gate = new Gate(store, () => undefined);
  const admittedAt = new Map<Ticket, number>();
  const arrive = (client: string, now: number): Ticket => {
    const ticket: Ticket = new Ticket('up', client, 1, [SHARED], (_, at) => void admittedAt.set(ticket, at));
    ticket.costs = new RequestCosts('route', [RULE], () => undefined);
    if (gate.requestAdmission(ticket, now + 60_000, now)?.kind === 'admitted') admittedAt.set(ticket, now);
    return ticket;
  };
  const limit = store.findLimit(SHARED)!;
  return { gate, limit, arrive, admittedAt };
}

describe('a settled cost', () => {
  test('delays the next request by the units above the charge', () => {
    const { gate, limit, arrive } = openGate();
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    expect(limit.meter.delay(0)).toBe(100);
    gate.onOutcome(ticket, response(200), 50);
    expect(gate.costs.settle(ticket, new Map([['', 60]]), 50)).toBe(true);
    expect(limit.meter.delay(50)).toBeCloseTo(550, 6);
  });

  test('admits a waiting request at once if the charge is given back', () => {
    const { gate, arrive, admittedAt } = openGate();
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    const waiting = arrive('b', 20);
    expect(admittedAt.has(waiting)).toBe(false);
    gate.onOutcome(ticket, response(200), 40);
    gate.costs.settle(ticket, new Map([['', 1]]), 40);
    expect(admittedAt.get(waiting)).toBe(40);
  });

  test('is settled once, also after the exchange has ended', () => {
    const { gate, limit, arrive } = openGate();
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    gate.onOutcome(ticket, response(200), 50);
    gate.onAttemptEnd(ticket, 50);
    gate.onExchangeEnd(ticket);
    expect(gate.costs.settle(ticket, new Map([['', 60]]), 50)).toBe(true);
    expect(gate.costs.settle(ticket, new Map([['', 900]]), 50)).toBe(false);
    expect(limit.meter.delay(50)).toBeCloseTo(550, 6);
  });

  test('is bounded, so that no response stops the limit', () => {
    const { gate, limit, arrive } = openGate();
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    gate.onOutcome(ticket, response(200), 0);
    gate.costs.settle(ticket, new Map([['', 1e300]]), 0);
    expect(limit.meter.delay(0)).toBe(10_000);
  });

  test('gives back the charge of a rejected request, and of one that was not sent', () => {
    for (const outcome of [response(429), failure('connect', false)]) {
      const { gate, limit, arrive } = openGate();
      const ticket = arrive('a', 0);
      gate.onSent(ticket, 0);
      gate.onOutcome(ticket, outcome, 0);
      gate.onAttemptEnd(ticket, 0);
      expect(limit.meter.delay(0)).toBe(0);
    }
  });

  test('keeps the charge if the response names no cost', () => {
    const { gate, limit, arrive } = openGate();
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    gate.onOutcome(ticket, response(200), 0);
    expect(gate.costs.settle(ticket, new Map(), 0)).toBe(false);
    expect(limit.meter.delay(0)).toBe(100);
  });
});
