import { describe, expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import { RequestCosts } from '../../../src/core/cost/request-costs.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { response, SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const WAIT = 100_000_000;
const RULE = { limit: '', expected: 10, min: 0, max: 1e9, isSettled: true };

const KNOWN = { initialRate: 100, maxRate: 100 };

/** A gate with a limit. `order`: the clients of admitted requests. */
function openGate(rates: Readonly<Partial<typeof KNOWN>> = KNOWN) {
  const rate = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, ...rates, minRate: 1, cooldown: 1000 };
  const upstreams = [upstreamSettings({ rate, queue: { maxWait: WAIT, maxDepth: 1000 } })];
  const store = new MemoryStore({ upstreams, maxTracked: 100, random: () => 0.5, listen: () => undefined });
  const gate = new Gate(store, () => undefined);
  const order: string[] = [];
  const request = (client: string, now: number, costs?: RequestCosts): Ticket => {
    const ticket: Ticket = new Ticket('up', client, 1, [SHARED], () => void order.push(client));
    ticket.costs = costs;
    if (gate.requestAdmission(ticket, now + WAIT, now)?.kind === 'admitted') order.push(client);
    return ticket;
  };
  const arrive = (client: string, now: number, cost?: number): Ticket =>
    request(client, now, new RequestCosts('route', [RULE], () => cost));
  const settle = (ticket: Ticket, cost: number, now: number): void => {
    gate.onSent(ticket, now);
    gate.onOutcome(ticket, response(200), now);
    gate.costs.settle(ticket, new Map([['', cost]]), now);
  };
  const reject = (ticket: Ticket, now: number): void => {
    gate.onSent(ticket, now);
    gate.onOutcome(ticket, response(429), now);
  };
  const wakeAll = (): void => {
    for (let wake = gate.nextWake(); wake !== undefined; wake = gate.nextWake()) gate.wake(wake);
  };
  return { gate, order, arrive, arriveWithoutCost: request, reject, settle, wakeAll };
}

const OTHERS = Array.from({ length: 20 }, (_, i) => `other ${i}`);

describe('the next turn of a client', () => {
  test('is delayed by what a queued request costs, as far as the pacer charges it', () => {
    const { arrive, order, wakeAll } = openGate();
    arrive('first', 0);
    arrive('dear', 1, 1e9);
    arrive('dear', 1);
    for (let i = 0; i < 700; i += 1) arrive('cheap', 1);
    wakeAll();
    expect(order.lastIndexOf('dear')).toBeGreaterThan(500);
    expect(order.lastIndexOf('dear')).toBeLessThan(610); // 6000 units
  });

  test('comes in its time also if requests of others cost nothing', () => {
    const { arrive, order, wakeAll } = openGate();
    arrive('first', 0);
    for (let i = 0; i < 300; i += 1) arrive('free', 1, 0);
    for (let i = 0; i < 2; i += 1) arrive('usual', 1, 1);
    wakeAll();
    expect(order.lastIndexOf('usual')).toBeLessThan(150);
  });

  test('comes in its time also if the responses to requests of others show at once that they cost nothing', () => {
    const { arrive, order, settle } = openGate();
    const sent = [arrive('free', 0)];
    const waiting = [arrive('free', 0)];
    for (let turn = 0; turn < 400 && !order.includes('usual'); turn += 1) {
      waiting.push(arrive('free', 0));
      if (turn === 3) arrive('usual', 0);
      for (const free of sent.splice(0)) settle(free, 0, 0);
      while (waiting[0]?.waitingLimit === undefined && waiting.length > 0) sent.push(...waiting.splice(0, 1));
    }
    expect(order).toContain('usual');
  });

  test('comes no sooner than what the pacer charged gives back', () => {
    const { arrive, order, settle, wakeAll, gate } = openGate();
    arrive('first', 0);
    const dear = arrive('dear', 1, 1e6);
    for (let i = 0; i < 10; i += 1) for (const client of ['other', 'dear']) arrive(client, 1, 6000);
    gate.wake(gate.nextWake() ?? 0);
    expect(order).toEqual(['first', 'dear']);
    settle(dear, 1, 101);
    wakeAll();
    expect(order.slice(2, 10).filter((client) => client === 'dear').length).toBeLessThanOrEqual(5);
  });

  test('comes in time for its share of the units, also if responses are slower than the turns of others', () => {
    const { arrive, order, settle, gate } = openGate();
    const waiting: Ticket[] = [];
    const sent: { readonly ticket: Ticket; readonly turn: number }[] = [];
    for (let i = 0; i < 450; i += 1) for (const client of ['cheap', 'dear']) waiting.push(arrive(client, 0));
    for (let turn = 0; turn < 400; turn += 1) {
      const now = gate.nextWake() ?? 0;
      gate.wake(now);
      const admitted = waiting.filter(({ waitingLimit }) => waitingLimit === undefined);
      for (const ticket of admitted) waiting.splice(waiting.indexOf(ticket), 1);
      sent.push(...admitted.map((ticket) => ({ ticket, turn })));
      while (sent[0] !== undefined && turn - sent[0].turn >= 8) {
        const ticket = sent.shift()!.ticket;
        settle(ticket, ticket.client === 'cheap' ? 1 : 10, now);
      }
    }
    const cheap = order.filter((client) => client === 'cheap').length;
    const dear = order.length - cheap;
    // The last eight are charged 10 units each, and not settled yet.
    expect(Math.abs(10 * dear - cheap)).toBeLessThanOrEqual(100);
  });

  test('comes no sooner by what is given back of a charge that delayed nobody', () => {
    const { arrive, order, settle, reject, wakeAll } = openGate({});
    const sent = ['dear', 'other', 'dear'].map((client) => arrive(client, 0, 1000));
    for (let i = 0; i < 20; i += 1) sent.push(arrive('other', 0, 10));
    for (const ticket of sent.splice(1)) reject(ticket, 100);
    order.length = 0;
    for (let i = 0; i < 40; i += 1) for (const client of ['other', 'dear']) arrive(client, 200, 10);
    for (const dear of sent) settle(dear, 0, 300);
    wakeAll();
    expect(order.slice(0, 40).filter((client) => client === 'dear').length).toBeLessThanOrEqual(21);
  });

  test('comes no sooner by what is given back of a charge that was paid for while no request waited', () => {
    const { arrive, order, settle, wakeAll } = openGate();
    const dear = arrive('dear', 0, 1000);
    arrive('other', 100_000);
    order.length = 0;
    for (let i = 0; i < 40; i += 1) for (const client of ['other', 'dear']) arrive(client, 100_001, 10);
    settle(dear, 0, 100_002);
    wakeAll();
    expect(order.slice(0, 40).filter((client) => client === 'dear').length).toBeLessThanOrEqual(21);
  });

  test('is delayed by what a request costs that was admitted at once', () => {
    const { arrive, order, wakeAll } = openGate();
    arrive('dear', 0, 500);
    for (const client of ['dear', ...OTHERS]) arrive(client, 1);
    wakeAll();
    expect(order).toEqual(['dear', ...OTHERS, 'dear']);
  });

  test('is not delayed by a request that was not sent', () => {
    const { arrive, order, wakeAll, gate } = openGate();
    arrive('first', 0);
    const unsent = arrive('a', 1);
    arrive('b', 1);
    gate.wake(gate.nextWake() ?? 0);
    gate.cancel(unsent, 100);
    order.length = 0;
    for (const client of ['a', ...OTHERS]) arrive(client, 101);
    wakeAll();
    expect(order.indexOf('a')).toBeLessThan(3);
  });

  test('is not delayed by what was paid for while no request waited', () => {
    const { arrive, order, settle, wakeAll } = openGate();
    settle(arrive('dear', 0), 5000, 0);
    order.length = 0;
    arrive('first', 100_000);
    for (const client of ['dear', ...OTHERS]) arrive(client, 100_001);
    wakeAll();
    expect(order.slice(0, 2)).toEqual(['first', 'dear']);
  });

  test('is not delayed by what was paid for while only requests without a cost passed', () => {
    const { arrive, arriveWithoutCost, order, settle, wakeAll } = openGate();
    settle(arrive('dear', 0), 5000, 0);
    order.length = 0;
    arriveWithoutCost('first', 100_000);
    for (const client of ['dear', ...OTHERS]) arrive(client, 100_001);
    wakeAll();
    expect(order.slice(0, 2)).toEqual(['first', 'dear']);
  });
});
