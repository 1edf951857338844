import { describe, expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import type { AdmissionCallback, EnforcementMode } from '../../../src/core/admission/gate-decision.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { CostRule } from '../../../src/core/cost/cost-rule.ts';
import { RequestCosts } from '../../../src/core/cost/request-costs.ts';
import type { RateSettings } from '../../../src/core/rate/rate-state.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { failure, response, SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const RULE: CostRule = { limit: '', expected: 10, min: 0, max: 1000, isSettled: true };
const KNOWN_RATE: RateSettings = { initialRate: 100, maxRate: 100, minRate: 1, cooldown: 1000 };

const UNKNOWN_RATE = { initialRate: undefined, maxRate: Infinity, minRate: 1, cooldown: 1000 };

const ENFORCE: EnforcementMode = 'enforce';

/** A gate with a limit, by default of 100 units a second. */
function openGate({ rule = RULE, rate = KNOWN_RATE, maxWait = 60_000, mode = ENFORCE } = {}) {
  const upstreams = [upstreamSettings({ rate, queue: { maxWait, maxDepth: 1000 } })];
  const store = new MemoryStore({ upstreams, maxTracked: 100, random: () => 0.5, listen: () => undefined });
  const gate = new Gate(store, () => undefined);
  const admittedAt = new Map<Ticket, number>();
  const arrive = (client: string, now: number): Ticket => {
    const settle: AdmissionCallback = (_, at) => void admittedAt.set(ticket, at);
    const ticket: Ticket = new Ticket('up', client, 1, [SHARED], settle, { mode });
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
  return { gate, limit, arrive, refuse, admittedAt, store };
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

  test('gives back the charge of a request that was not sent', () => {
    const { gate, limit, arrive } = openGate();
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    gate.onOutcome(ticket, failure('connect', false), 0);
    gate.onAttemptEnd(ticket, 0);
    expect(limit.meter.delay(0)).toBe(0);
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

  test('stands if the response is cut off, and if the client leaves before it: aborted requests delay others by their charges only', () => {
    const { gate, arrive, limit } = openGate();
    for (let i = 0; i < 40; i += 1) {
      const ticket = arrive('a', i * 20_000);
      gate.onSent(ticket, i * 20_000);
      gate.onOutcome(ticket, response(200), i * 20_000);
      gate.costs.settle(ticket, new Map([['', 60]]), i * 20_000);
    }
    const { meanCost } = limit.meter;
    for (let i = 0; i < 40; i += 1) {
      const now = 800_000 + i * 100;
      const ticket = arrive('buyer', now);
      gate.onSent(ticket, now);
      gate.onOutcome(ticket, i % 2 === 0 ? response(200) : failure('aborted', true), now);
      expect(limit.meter.delay(now)).toBeCloseTo(100, 6);
    }
    expect(limit.meter.meanCost).toBe(meanCost);
  });

  test('stands if the request is rejected, whatever its response names', () => {
    const { gate, limit, arrive } = openGate();
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    gate.onOutcome(ticket, response(429), 0);
    expect(gate.costs.settle(ticket, new Map([['', 500]]), 0)).toBe(false);
    expect(limit.meter.delay(0)).toBeCloseTo(10_000 / limit.meter.rate(0), 6);
  });

  test('of a request that would have been refused, in observe mode, changes no wait', () => {
    const { gate, limit, arrive } = openGate({ mode: 'observe', maxWait: 0 });
    const [passed, refused] = [arrive('a', 0), arrive('b', 0)];
    for (const [ticket, cost] of [
      [refused, 500],
      [passed, 60],
    ] as const) {
      gate.onSent(ticket, 0);
      gate.onOutcome(ticket, response(200), 0);
      gate.costs.settle(ticket, new Map([['', cost]]), 0);
    }
    expect(limit.meter.delay(0)).toBeCloseTo(600, 6);
  });

  test('of an attempt that would have been refused, in observe mode, changes no wait, although one before it took a token', () => {
    const { gate, limit, arrive } = openGate({ mode: 'observe', maxWait: 0 });
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    gate.onOutcome(ticket, response(503), 10);
    gate.onAttemptEnd(ticket, 10);
    gate.requestAdmission(ticket, 10, 10);
    gate.onSent(ticket, 10);
    gate.onOutcome(ticket, response(200), 20);
    gate.costs.settle(ticket, new Map([['', 500]]), 20);
    expect(limit.meter.delay(20)).toBeCloseTo(80, 6);
  });

  test('is not read for a limit that does not apply to the request', () => {
    const { gate, arrive } = openGate({ rule: { ...RULE, limit: 'search' } });
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    expect(ticket.costs?.hasOpen).toBe(false);
  });

  test('is dropped if a reload has removed the upstream meanwhile', () => {
    const { gate, arrive, store } = openGate();
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    gate.onOutcome(ticket, response(200), 0);
    gate.onAttemptEnd(ticket, 0);
    gate.onExchangeEnd(ticket);
    store.removeUpstream('up');
    expect(gate.costs.settle(ticket, new Map([['', 60]]), 0)).toBe(false);
  });

  test('delays the turn of its client also if no request waited when it became known', () => {
    const { gate, arrive, admittedAt } = openGate();
    const ticket = arrive('buyer', 0);
    gate.onSent(ticket, 0);
    gate.onOutcome(ticket, response(200), 0);
    gate.costs.settle(ticket, new Map([['', 100]]), 0);
    const again = arrive('buyer', 1);
    const others = [arrive('other', 2), arrive('other', 2)];
    for (let wake = gate.nextWake(); wake !== undefined && wake < 10_000; wake = gate.nextWake()) gate.wake(wake);
    for (const other of others) expect(admittedAt.get(other)).toBeLessThan(admittedAt.get(again) ?? 0);
  });

  test('of a request that was admitted and not sent is given back', () => {
    const { gate, limit, arrive } = openGate();
    const ticket = arrive('a', 0);
    expect(limit.meter.delay(0)).toBe(100);
    gate.cancel(ticket, 0);
    expect(limit.meter.delay(0)).toBe(0);
  });

  test('of requests that were not sent makes no burst later', () => {
    const { gate, arrive } = openGate();
    for (let i = 0; i < 5; i += 1) gate.cancel(arrive('a', i * 1000), i * 1000 + 500);
    const now = 10_000;
    gate.onSent(arrive('a', now), now);
    expect(arrive('a', now).waitingLimit).toBeDefined();
  });

  test('of a request that was not sent delays the next turn of its client as one unit does', () => {
    const { gate, arrive, admittedAt } = openGate();
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    const unsent = arrive('b', 1);
    arrive('c', 1);
    gate.wake(gate.nextWake() ?? 0);
    gate.cancel(unsent, admittedAt.get(unsent) ?? 0);
    const own = arrive('b', 102);
    const other = arrive('c', 102);
    for (let wake = gate.nextWake(); wake !== undefined; wake = gate.nextWake()) gate.wake(wake);
    expect(admittedAt.get(own)).toBeLessThan(admittedAt.get(other) ?? 0);
  });

  test('counts in the waits of others, also the part that later requests pay', () => {
    const { gate, arrive } = openGate({ rule: { ...RULE, max: 6000 }, maxWait: 400_000 });
    for (const ticket of [arrive('a', 0), arrive('a', 100)]) {
      gate.onSent(ticket, 100);
      gate.onOutcome(ticket, response(200), 100);
      gate.costs.settle(ticket, new Map([['', 6000]]), 100);
    }
    const waits = [arrive('b', 101), arrive('c', 101)].map(({ estimatedWait = 0 }) => Math.round(estimatedWait / 1000));
    expect(waits).toEqual([60, 125]); // a minute of what is unpaid; a minute of the rest, and the mean cost
  });

  test('counts in the wait of a request that has no cost itself', () => {
    const { gate, arrive } = openGate({ maxWait: 400_000 });
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    gate.onOutcome(ticket, response(200), 0);
    gate.costs.settle(ticket, new Map([['', 100]]), 0);
    for (let i = 0; i < 10; i += 1) arrive('b', 0);
    const plain = new Ticket('up', 'b', 1, [SHARED], () => undefined);
    gate.requestAdmission(plain, 400_000, 0);
    expect(plain.estimatedWait).toBeCloseTo(11_000, 6); // the 100 units of the first, and 100 for each of ten others
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
    const { gate, limit, arrive, admittedAt } = openGate({ rule: { ...RULE, max: 1e9 }, maxWait: 900_000 });
    const ticket = arrive('a', 0);
    gate.onSent(ticket, 0);
    const others = Array.from({ length: 700 }, () => arrive('b', 1));
    gate.onOutcome(ticket, response(200), 2);
    gate.costs.settle(ticket, new Map([['', 1e9]]), 2);
    const again = arrive('a', 3);
    for (let wake = gate.nextWake(); wake !== undefined; wake = gate.nextWake()) gate.wake(wake);
    const before = others.filter((other) => (admittedAt.get(other) ?? 0) < (admittedAt.get(again) ?? 0)).length;
    expect(before).toBeGreaterThan(400);
    expect(before).toBeLessThanOrEqual(602); // 6000 units
    const later = 1_000_000;
    for (const client of ['c', 'a', 'b']) arrive(client, later);
    expect(limit.queue.front?.client).toBe('a');
  });
});
