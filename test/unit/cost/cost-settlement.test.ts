import { describe, expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { CostRule } from '../../../src/core/cost/cost-rule.ts';
import { RequestCosts } from '../../../src/core/cost/request-costs.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { RateSettings } from '../../../src/core/rate/rate-state.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { failure, response, SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const RULE: CostRule = { limit: '', expected: 10, min: 0, max: 1000, isSettled: true };
const KNOWN_RATE: RateSettings = { initialRate: 100, maxRate: 100, minRate: 1, cooldown: 1000 };

const UNKNOWN_RATE = { initialRate: undefined, maxRate: Infinity, minRate: 1, cooldown: 1000 };

/** A gate with a limit, by default of 100 units a second. */
function openGate({ rule = RULE, rate = KNOWN_RATE, maxWait = 60_000 } = {}) {
  const upstreams = [upstreamSettings({ rate, queue: { maxWait, maxDepth: 1000 } })];
  const store = new MemoryStore({ upstreams, maxTracked: 100, random: () => 0.5, listen: () => undefined });
  const gate = new Gate(store, () => undefined);
  const admittedAt = new Map<Ticket, number>();
  const arrive = (client: string, now: number): Ticket => {
    const ticket: Ticket = new Ticket('up', client, 1, [SHARED], (_, at) => void admittedAt.set(ticket, at));
    ticket.costs = new RequestCosts('route', [rule], () => undefined);
    if (gate.requestAdmission(ticket, now + maxWait, now)?.kind === 'admitted') admittedAt.set(ticket, now);
    return ticket;
  };
  /** The Retry-After of a request that is refused. */
  const refuse = (client: string, now: number): number => {
    const ticket = new Ticket('up', client, 1, [SHARED], () => undefined);
    ticket.costs = new RequestCosts('route', [rule], () => undefined);
    const admission = gate.requestAdmission(ticket, now + 60_000, now);
    if (admission?.kind !== 'refused') throw new Error('was admitted');
    return admission.retryAfterMs;
  };
  const limit = store.findLimit(SHARED)!;
  return { gate, limit, arrive, refuse, admittedAt };
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
    expect(limit.meter.meanCost).toBeLessThanOrEqual(100);
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

  test('leads to no Retry-After beyond what is paced, however high it is', () => {
    const { gate, limit, refuse, arrive } = openGate({ rule: { ...RULE, max: 1e9 }, maxWait: 0 });
    for (let i = 0; i < 40; i += 1) {
      const ticket = arrive('a', 0);
      gate.onSent(ticket, 0);
      gate.onOutcome(ticket, response(200), 0);
      gate.costs.settle(ticket, new Map([['', 1e9]]), 0);
      gate.onAttemptEnd(ticket, 0);
      gate.onExchangeEnd(ticket);
    }
    expect(refuse('b', 0)).toBeLessThan(120_000);
    expect(limit.meter.meanCost).toBeLessThan(1e9);
  });

  test('of one response makes the first cut find no absurd rate', () => {
    const { gate, limit, arrive } = openGate({ rule: { ...RULE, expected: 1, max: 1e6 }, rate: UNKNOWN_RATE });
    const send = (now: number) => {
      const ticket = arrive('a', now);
      gate.onSent(ticket, now);
      return ticket;
    };
    for (let now = 0; now < 1000; now += 20) {
      const ticket = send(now);
      gate.onOutcome(ticket, response(200), now + 1);
      gate.costs.settle(ticket, new Map([['', now === 500 ? 1e6 : 1]]), now + 1);
    }
    gate.onOutcome(send(1000), response(429), 1001);
    expect(limit.meter.rate(1001)).toBeLessThan(100);
  });

  test('is at least the mean and the spread of the route if the response is cut off', () => {
    const { gate, arrive, limit } = openGate();
    for (let i = 0; i < 40; i += 1) {
      const ticket = arrive(`other ${i}`, i * 20_000);
      gate.onSent(ticket, i * 20_000);
      gate.onOutcome(ticket, response(200), i * 20_000);
      gate.costs.settle(ticket, new Map([['', i % 2 === 0 ? 20 : 60]]), i * 20_000);
    }
    const now = 40 * 20_000;
    const ticket = arrive('buyer', now);
    gate.onSent(ticket, now);
    gate.onOutcome(ticket, response(200), now);
    gate.costs.settleUnread(ticket, [''], now);
    expect(limit.meter.delay(now)).toBeGreaterThan(550);
    expect(ticket.costs?.hasOpen).toBe(false);
  });

  test('is at least the mean and the spread of the route if the client leaves before the response', () => {
    const { gate, arrive, limit } = openGate();
    for (let i = 0; i < 3; i += 1) {
      const ticket = arrive(`other ${i}`, i * 20_000);
      gate.onSent(ticket, i * 20_000);
      gate.onOutcome(ticket, response(200), i * 20_000);
      gate.costs.settle(ticket, new Map([['', [100, 20, 60][i] ?? 0]]), i * 20_000);
    }
    const ticket = arrive('buyer', 80_000);
    gate.onSent(ticket, 80_000);
    gate.onOutcome(ticket, { ...failure('timeout', true), isClientTimeout: true } as AttemptOutcome, 80_000);
    expect(limit.meter.delay(80_000)).toBeGreaterThan(700);
  });

  test('of a request that was admitted and not sent is given back', () => {
    const { gate, limit, arrive } = openGate();
    const ticket = arrive('a', 0);
    expect(limit.meter.delay(0)).toBe(100);
    gate.cancel(ticket, 0);
    expect(limit.meter.delay(0)).toBe(0);
  });

  test('is not taken for less because requests are not sent, or not yet settled', () => {
    const { gate, limit, arrive } = openGate();
    for (let i = 0; i < 50; i += 1) {
      const ticket = arrive('a', i * 1000);
      gate.onSent(ticket, i * 1000);
      gate.onOutcome(ticket, response(200), i * 1000);
      gate.costs.settle(ticket, new Map([['', 40]]), i * 1000);
    }
    for (let i = 0; i < 50; i += 1) {
      const ticket = arrive('b', (50 + i) * 1000);
      gate.onSent(ticket, (50 + i) * 1000);
      if (i % 2 === 0) gate.onOutcome(ticket, failure('connect', false), (50 + i) * 1000);
    }
    expect(limit.meter.meanCost).toBeCloseTo(40, 6);
  });

  test('of the requests sent since counts against a reported quota by their charges', () => {
    const { gate, limit, arrive } = openGate();
    const [first, second] = [arrive('a', 0), arrive('a', 10_000)];
    const dear = arrive('b', 20_000);
    gate.onSent(dear, 20_000);
    gate.onOutcome(dear, response(200), 20_000);
    gate.costs.settle(dear, new Map([['', 100]]), 20_000);
    for (const ticket of [first, second]) gate.onSent(ticket, 20_000);
    gate.onOutcome(
      first,
      response(200, { quota: { remaining: 12, limit: 100, resetIn: 60_000, window: undefined } }),
      20_000,
    );
    expect(limit.meter.quotaLeft).toBeCloseTo(0.02, 6); // 12 − the 10 of the second, of 100
  });

  test('delays the next turn of a client by what the pacer charges at most, and no longer once the limit was idle', () => {
    const { gate, limit, arrive } = openGate({ rule: { ...RULE, max: 1e9 }, maxWait: 900_000 });
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    arrive('b', 1);
    gate.onOutcome(ticket, response(200), 2);
    gate.costs.settle(ticket, new Map([['', 1e9]]), 2);
    const slot = ticket.clientSlot ?? -1;
    const others = arrive('b', 3);
    expect(others.waitingLimit).toBe(limit);
    expect(limit.queue.unitsOwed(slot)).toBeGreaterThan(1000);
    expect(limit.queue.unitsOwed(slot)).toBeLessThanOrEqual(6000);
    for (let wake = gate.nextWake(); wake !== undefined; wake = gate.nextWake()) gate.wake(wake);
    const later = 1_000_000;
    arrive('c', later);
    arrive('d', later);
    expect(limit.queue.size).toBe(1);
    expect(limit.queue.unitsOwed(slot)).toBe(0);
  });
});
