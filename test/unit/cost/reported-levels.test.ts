import { expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import type { EnforcementMode } from '../../../src/core/admission/gate-decision.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { CostRule } from '../../../src/core/cost/cost-rule.ts';
import { RequestCosts } from '../../../src/core/cost/request-costs.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { response, SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const RULE: CostRule = { limit: 'tokens', expected: 10, min: 0, max: 1000, isSettled: true };
const TOKENS = { ...SHARED, nested: 'tokens' };
const UNLIMITED = { initialRate: undefined, maxRate: Infinity, minRate: 0.01, cooldown: 1000 };

/** A gate of an upstream that limits requests, and within that tokens: 10 for each request. */
function openGate(mode: EnforcementMode = 'enforce', maxWait = 60_000, initialRate?: number) {
  const nested = [{ name: 'tokens', scope: 'upstream' as const, isKeyed: false, rate: { ...UNLIMITED, initialRate } }];
  const upstreams = [upstreamSettings({ rate: UNLIMITED, nested, queue: { maxWait, maxDepth: 1000 } })];
  const store = new MemoryStore({ upstreams, maxTracked: 100, random: () => 0.5, listen: () => undefined });
  const gate = new Gate(store, () => undefined);
  const send = (now: number): Ticket => {
    const ticket = new Ticket('up', 'a', 1, [SHARED, TOKENS], () => undefined, { mode });
    ticket.costs = new RequestCosts('route', [RULE], () => undefined);
    gate.requestAdmission(ticket, now + maxWait, now);
    gate.onSent(ticket, now);
    return ticket;
  };
  return { gate, send, requests: store.findLimit(SHARED)!.meter, tokens: store.findLimit(TOKENS)!.meter };
}

const LEVEL = { remaining: 32, limit: 100, resetIn: 60_000, window: undefined };

test('a quota of requests counts those sent since the request that reports it, also beside a limit of tokens', () => {
  const { gate, send, requests, tokens } = openGate();
  const first = send(0);
  for (const now of [1, 2]) send(now);
  gate.onOutcome(first, response(200, { quota: LEVEL }), 10);
  expect(requests.quotaLeft).toBeCloseTo(0.3, 9);
  expect(tokens.quotaLeft).toBeUndefined();
});

test('a limit on requests in flight is found beside a limit of tokens', () => {
  const { gate, send, requests } = openGate();
  let now = 0;
  const active: Ticket[] = [];
  for (let i = 0; i < 400; i += 1, now += 10) {
    const ticket = send(now);
    active.push(ticket);
    if (active.length > 5) {
      active.pop();
      gate.onOutcome(ticket, response(429, { limit: '' }), now + 1);
      gate.onAttemptEnd(ticket, now + 1);
      const oldest = active.shift()!;
      gate.onOutcome(oldest, response(200), now + 2);
      gate.onAttemptEnd(oldest, now + 2);
    }
    if (requests.concurrencyLimit !== undefined) break;
  }
  expect(requests.concurrencyLimit).toBeDefined();
});

test('the level of a bucket counts the units sent since the request that reports it', () => {
  const { gate, send, tokens } = openGate();
  const first = send(0);
  for (const now of [1, 2]) send(now);
  gate.onOutcome(first, response(200), 10);
  gate.costs.applyBucket(first, 'tokens', LEVEL, 10);
  expect(tokens.quotaLeft).toBeCloseTo(0.12, 9);
});

test('the level of a bucket that requests have overrun in observe mode is not applied', () => {
  const { gate, send, tokens } = openGate('observe', 0, 1);
  const tickets = [send(0), send(1)];
  for (const ticket of tickets) {
    gate.onOutcome(ticket, response(200), 10);
    gate.costs.applyBucket(ticket, 'tokens', LEVEL, 10);
  }
  expect(tokens.quotaLeft).toBeUndefined();
});

test('the level of a bucket below what was sent since stops no request: the bucket refills all the time', () => {
  for (const level of [LEVEL, { ...LEVEL, remaining: 0 }]) {
    const { gate, send, tokens } = openGate();
    const first = send(0);
    for (const now of [1, 2, 3, 4]) send(now);
    gate.onOutcome(first, response(200), 10);
    gate.costs.applyBucket(first, 'tokens', level, 10);
    expect(tokens.quotaLeft).toBeCloseTo(0.01, 9);
    expect(tokens.delay(10)).toBe(0);
  }
});

test('a quota in a reported outcome is applied as it is reported: what was sent since is not known', () => {
  const { gate, send, requests } = openGate();
  for (let now = 0; now < 50; now += 1) gate.onOutcome(send(now), response(200), now);
  const report = new Ticket('up', 'a', 1, [SHARED], () => undefined);
  gate.onExternalOutcome(report, response(200, { quota: LEVEL }), 40, 60);
  expect(requests.quotaLeft).toBeCloseTo(0.32, 9);
});
