import { describe, expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { CostRule } from '../../../src/core/cost/cost-rule.ts';
import { RequestCosts } from '../../../src/core/cost/request-costs.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { collectLearnedLimits } from '../../../src/store/persistence/learned-state.ts';
import { decodeState, encodeState } from '../../../src/store/persistence/state-codec.ts';
import { response, SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const TOKENS: CostRule = { limit: '', expected: 5000, min: 0, max: 1e6, isSettled: true, unit: 'tokens' };

/** A gate whose requests cost tokens, until a reload makes each cost one unit. */
function openGate(initialRate?: number) {
  const settingsOf = (unit: string | undefined) => {
    const rate = { initialRate, maxRate: Infinity, minRate: 0.01, cooldown: 1000, unit };
    return upstreamSettings({ rate, queue: { maxWait: 600_000, maxDepth: 1000 } });
  };
  const upstreams = [settingsOf('tokens')];
  const store = new MemoryStore({ upstreams, maxTracked: 100, random: () => 0.5, listen: () => undefined });
  const gate = new Gate(store, () => undefined);
  const limit = store.findLimit(SHARED)!;
  const arrive = (now: number, rule?: CostRule, client = 'a', group?: string): Ticket => {
    const ticket = new Ticket('up', client, 1, [SHARED], () => undefined, { addressGroup: group });
    if (rule !== undefined) ticket.costs = new RequestCosts('route', [rule], () => undefined);
    gate.requestAdmission(ticket, now + 600_000, now);
    return ticket;
  };
  const send = (now: number, rule?: CostRule): Ticket => {
    const ticket = arrive(now, rule);
    gate.onSent(ticket, now);
    return ticket;
  };
  const answer = (ticket: Ticket, status: number, now: number): void => {
    gate.onOutcome(ticket, response(status), now);
    gate.onAttemptEnd(ticket, now);
  };
  const reload = (now: number): void => {
    store.configure([settingsOf(undefined)], 100);
    gate.reevaluateQueues(now);
  };
  return { gate, limit, store, arrive, send, answer, reload };
}

describe('a change of the unit', () => {
  test('ends a block, which would restore a rate of the former unit', () => {
    const { limit, send, answer, reload } = openGate();
    for (let now = 0; now < 10_000; now += 50) answer(send(now, TOKENS), 200, now);
    for (let i = 0, now = 10_000; limit.meter.phase !== 'blocked' && i < 500; i += 1, now += 100) {
      answer(send(now, TOKENS), 503, now);
    }
    expect(limit.meter.phase).toBe('blocked');
    reload(70_000);
    answer(send(100_000), 200, 100_000);
    expect([limit.meter.phase, limit.meter.hasBlock, limit.meter.rate(100_000)]).toEqual(['open', false, Infinity]);
  });

  test('ends the payment of what requests have cost in the former unit', () => {
    const { limit, send, answer, reload } = openGate(1);
    answer(send(0, TOKENS), 200, 0);
    expect(limit.meter.delay(0)).toBe(60_000);
    reload(10);
    answer(send(10), 200, 10);
    expect(limit.meter.delay(10)).toBeCloseTo(1000, 6);
  });

  test('ends the payment at a pinned rate, too', () => {
    const { limit, send, answer, reload, store } = openGate();
    store.applyOverride('up', { action: 'pin', rate: 1 }, 0);
    answer(send(0, TOKENS), 200, 0);
    expect(limit.meter.delay(0)).toBe(60_000);
    reload(10);
    answer(send(10), 200, 10);
    expect(limit.meter.delay(10)).toBeCloseTo(1000, 6);
  });

  test('drops the history, so that the first cut finds no rate of the former unit', () => {
    const { limit, send, answer, reload } = openGate();
    for (let now = 0; now < 1000; now += 50) answer(send(now, TOKENS), 200, now);
    reload(1000);
    answer(send(1000), 200, 1000);
    answer(send(1001), 429, 1001);
    expect(limit.meter.rate(1001)).toBeLessThan(100);
  });

  test('leaves costs uncounted that become known later, and counts a waiting request as one', () => {
    const { gate, limit, arrive, send, reload } = openGate(1);
    const sent = send(0, TOKENS);
    const waiting = arrive(1, TOKENS);
    reload(10);
    expect(waiting.waitingLimit).toBeUndefined();
    gate.onSent(waiting, 10);
    expect(limit.meter.delay(10)).toBeCloseTo(1000, 6);
    for (const ticket of [sent, waiting]) {
      gate.onOutcome(ticket, response(200), 20);
      expect(gate.costs.settle(ticket, new Map([['', 90_000]]), 20)).toBe(false);
    }
    expect(limit.meter.delay(20)).toBeCloseTo(990, 6);
    expect(limit.meter.meanCost).toBe(1);
  });

  for (const group of [undefined, 'address']) {
    test(`delays no turn of a client ${group === undefined ? '' : 'of an address '}by what its requests have cost in the former unit`, () => {
      const { gate, arrive, reload } = openGate(10_000);
      const groupOf = (client: string) => (group === undefined ? undefined : `${group} of ${client}`);
      for (let i = 0; i < 30; i += 1) for (const client of ['a', 'b']) arrive(0, TOKENS, client, groupOf(client));
      const dear = arrive(0, { ...TOKENS, expected: 600_000 }, 'dear', groupOf('dear'));
      const waiting = Array.from({ length: 30 }, () => arrive(0, TOKENS, 'dear', groupOf('dear')));
      let now = 0;
      const serveNext = (): void => gate.wake((now = gate.nextWake() ?? now));
      while (dear.waitingLimit !== undefined) serveNext();
      reload(now);
      for (let i = 0; i < 29; i += 1) serveNext();
      expect(waiting.filter(({ waitingLimit }) => waitingLimit === undefined).length).toBeGreaterThanOrEqual(9);
    });
  }

  test('is not yet one of a limit without requests, whose rate is stored with the unit in which it was learned', () => {
    const { store, send, answer, reload } = openGate();
    for (let now = 0; now < 1000; now += 50) answer(send(now, TOKENS), 200, now);
    answer(send(1000, TOKENS), 429, 1001);
    reload(2000);
    const origins = new Map([['up', ['https://api.example']]]);
    const limits = collectLearnedLimits(store.learnedViews(2000), () => undefined, 10, 2000);
    const restored = [undefined, 'tokens'].map((unit) => {
      const context = { wallClock: 0, now: 2000, secretFingerprint: undefined, origins, unitOf: () => unit };
      const state = decodeState(encodeState({ limits, holds: [] }, context), context);
      return state.kind === 'learned' ? state.learned.limits.filter(({ rate }) => rate !== undefined).length : state;
    });
    expect(restored).toEqual([0, 1]);
  });
});
