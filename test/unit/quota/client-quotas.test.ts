/** Quotas of classes of clients, and of single clients. */
import { describe, expect, test } from 'vitest';
import type { CalendarQuotaSettings } from '../../../src/core/quota/calendar/calendar-quota.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { Arrival, QueuedTicket } from '../../support/core/call-record.ts';
import {
  failure,
  fixedDelay,
  limitedTo,
  pollPolicy,
  response,
  retryPolicy,
  routePolicy,
  SEND_ONCE,
  upstreamSettings,
} from '../../support/core/policy-builders.ts';
import { DAY, HOUR, MemoryJournal, quotaSettings } from '../../support/core/quota-builders.ts';
import { World, type WorldOptions } from '../../support/core/world.ts';

const ADMITTED = { kind: 'admitted' };
const NOON = 12 * HOUR;

interface Quotas {
  readonly upstream?: number;
  /** Of class `partners`. */
  readonly shared?: number;
  readonly perClient?: number;
}

const ofClass = ({ shared, perClient }: Quotas) => ({
  className: 'partners',
  shared: shared === undefined ? [] : [quotaSettings({ name: 'class:partners/day', limit: shared })],
  perClient: perClient === undefined ? [] : [quotaSettings({ name: 'class:partners/client/day', limit: perClient })],
});

const upstreamQuotas = ({ upstream }: Quotas): CalendarQuotaSettings[] =>
  upstream === undefined ? [] : [quotaSettings({ limit: upstream })];

/** A world at noon. */
function worldWith(quotas: Quotas, { upstream, ...options }: WorldOptions = {}): World {
  const settings = { quotas: upstreamQuotas(quotas), classQuotas: [ofClass(quotas)], ...upstream };
  const world = new World({ random: () => 0.5, ...options, upstream: settings });
  world.now = NOON;
  return world;
}

const partner = (client: string, rest: Arrival = {}): Arrival => ({
  client,
  className: 'partners',
  isProven: true,
  ...rest,
});

/** Requests that are admitted, sent and answered one after another. */
function serveMany(world: World, count: number, arrival: Arrival): void {
  for (let i = 0; i < count; i += 1) {
    const queued = world.arrive(arrival);
    expect(queued.admission).toEqual(ADMITTED);
    world.serve(queued);
  }
}

const refusal = ({ admission }: QueuedTicket): unknown =>
  admission?.kind === 'refused' ? [admission.why, admission.retryAfterMs] : admission;

const remaining = (world: World): Record<string, number> =>
  Object.fromEntries((world.gate.view(world.now).quotas ?? []).map(({ name, remaining: left }) => [name, left]));

describe('a quota of a class', () => {
  test('counts the requests of all its clients together, and of no others', () => {
    const world = worldWith({ shared: 3 });
    serveMany(world, 2, partner('a'));
    serveMany(world, 1, partner('b'));
    for (const client of ['a', 'b', 'c']) {
      expect(refusal(world.arrive(partner(client)))).toEqual(['client_quota_exceeded', 12 * HOUR]);
    }
    serveMany(world, 5, { client: 'd' });
    serveMany(world, 5, { client: 'e', className: 'others', isProven: true });
    world.runUntil(DAY);
    serveMany(world, 3, partner('c'));
  });

  test('counts no requests of clients without proven names where clients have to prove them', () => {
    const classQuotas = [{ ...ofClass({ shared: 1, perClient: 9 }), needsProof: true }];
    const world = worldWith({}, { upstream: { classQuotas } });
    serveMany(world, 3, partner('a', { isProven: false }));
    serveMany(world, 1, partner('a'));
    expect(refusal(world.arrive(partner('b')))).toEqual(['client_quota_exceeded', 12 * HOUR]);
  });

  test('applies to clients that have not proven their names, too', () => {
    const world = worldWith({ shared: 1 });
    serveMany(world, 1, partner('a', { isProven: false }));
    expect(refusal(world.arrive(partner('b', { isProven: false })))).toEqual(['client_quota_exceeded', 12 * HOUR]);
  });

  test('is shown with those of the upstream', () => {
    const world = worldWith({ upstream: 100, shared: 10, perClient: 5 });
    serveMany(world, 2, partner('a'));
    expect(remaining(world)).toEqual({ day: 98, 'class:partners/day': 8 });
  });
});

describe('a quota of each client', () => {
  test('counts the requests of each client of the class by itself', () => {
    const world = worldWith({ perClient: 2 });
    for (const client of ['a', 'b']) {
      serveMany(world, 2, partner(client));
      expect(refusal(world.arrive(partner(client)))).toEqual(['client_quota_exceeded', 12 * HOUR]);
    }
    serveMany(world, 1, partner('c'));
  });

  test('does not apply to a client that has not proven its name', () => {
    const world = worldWith({ perClient: 1 });
    serveMany(world, 3, partner('a', { isProven: false }));
    serveMany(world, 1, partner('a'));
    expect(world.arrive(partner('a')).admission).toMatchObject({ why: 'client_quota_exceeded' });
  });

  test('takes no part of a quota when another one refuses the request', () => {
    const world = worldWith({ upstream: 10, shared: 3, perClient: 2 });
    serveMany(world, 2, partner('a'));
    for (let i = 0; i < 5; i += 1) expect(world.arrive(partner('a')).admission).toMatchObject({ kind: 'refused' });
    expect(remaining(world)).toEqual({ day: 8, 'class:partners/day': 1 });
    serveMany(world, 1, partner('b'));
    expect(world.arrive(partner('c')).admission).toMatchObject({ why: 'client_quota_exceeded' });
    expect(remaining(world)).toEqual({ day: 7, 'class:partners/day': 0 });
  });

  test('comes before a quota of the upstream as the reason, and the later reset determines the return', () => {
    const hourly = quotaSettings({
      name: 'class:partners/client/rolling-1h',
      limit: 1,
      period: { kind: 'rolling', length: HOUR },
    });
    const world = worldWith({ upstream: 1 }, { upstream: { classQuotas: [{ ...ofClass({}), perClient: [hourly] }] } });
    serveMany(world, 1, partner('a'));
    expect(refusal(world.arrive(partner('a')))).toEqual(['client_quota_exceeded', 12 * HOUR]);
    expect(refusal(world.arrive(partner('b')))).toEqual(['quota_exceeded', 12 * HOUR]);
  });

  test('is named in the details of a refusal', () => {
    const world = worldWith({ shared: 5, perClient: 1 });
    serveMany(world, 1, partner('a'));
    const { ticket } = world.arrive(partner('a'));
    expect(world.gate.decisionDetails(ticket, world.now).quota).toMatchObject({
      name: 'class:partners/client/day',
      subject: 'client',
      limit: 1,
      untilReset: 12 * HOUR,
    });
  });

  test('is not exceeded by simultaneous requests, and not used by one that is cancelled', () => {
    const world = worldWith({ perClient: 2 });
    const [first] = [world.arrive(partner('a')), world.arrive(partner('a'))];
    expect(refusal(world.arrive(partner('a')))).toEqual(['client_quota_exceeded', 1000]);
    world.gate.cancel(first.ticket, world.now);
    expect(world.arrive(partner('a')).admission).toEqual(ADMITTED);
  });

  test('counts a request once, however often it is retried', () => {
    const statuses = [503, 503, 200];
    const world = worldWith(
      { upstream: 100, shared: 10, perClient: 1 },
      { respond: () => ({ outcome: response(statuses.shift() ?? 200), after: 10 }) },
    );
    const policy = routePolicy({ retry: retryPolicy({ attempts: 3 }) });
    const record = world.call({ policy, client: 'a', className: 'partners', isProven: true });
    world.runUntil(NOON + 60_000);
    expect(record.verdict).toMatchObject({ kind: 'forward', attempts: 3 });
    expect(remaining(world)).toEqual({ day: 97, 'class:partners/day': 9 });
  });

  test('counts a write once, however often its result is polled for, and forwards the result', () => {
    const world = worldWith(
      { upstream: 100, shared: 10, perClient: 1 },
      { respond: ({ at }) => ({ outcome: response(at < NOON + 1500 ? 202 : 200), after: 10 }) },
    );
    const pollWait = { tryEnter: () => true, onPollOutcome: () => undefined, leave: () => undefined };
    const policy = { poll: pollPolicy({ backOff: fixedDelay(500) }) };
    const facts = { preferredWait: 60_000 };
    const record = world.call({ policy, facts, pollWait, client: 'a', className: 'partners', isProven: true });
    world.runUntil(NOON + 60_000);
    expect(record.verdict).toMatchObject({ kind: 'forward', polls: 4 });
    expect(record.status).toBe(200);
    expect(remaining(world)).toEqual({ day: 96, 'class:partners/day': 9 });
    expect(record.driver.ticket.clientQuota).toBeUndefined();
  });

  test('gets its part back if nothing was sent, unless an earlier attempt was', () => {
    const world = worldWith({ shared: 10, perClient: 1 });
    const unsent = world.arrive(partner('a'));
    world.send(unsent);
    world.answer(unsent, failure('connect', false));
    expect(remaining(world)).toEqual({ 'class:partners/day': 10 });
    for (const outcome of [response(503), failure('connect', false)]) {
      world.gate.requestAdmission(unsent.ticket, world.now + 1000, world.now);
      world.send(unsent);
      world.answer(unsent, outcome);
    }
    expect(remaining(world)).toEqual({ 'class:partners/day': 9 });
    expect(world.arrive(partner('a')).admission).toMatchObject({ why: 'client_quota_exceeded' });
  });

  test('refuses a request at once when it is used up, however soon the reset is', () => {
    const world = worldWith({ perClient: 1 }, { upstream: limitedTo(1000) });
    serveMany(world, 1, partner('a'));
    world.runUntil(DAY - 500);
    expect(refusal(world.arrive(partner('a')))).toEqual(['client_quota_exceeded', 1000]);
    expect(world.limit.queue.size).toBe(0);
    world.runUntil(DAY);
    serveMany(world, 1, partner('a'));
  });

  test('keeps the part of a request that waits for the rate, and gives it back if that is cancelled', () => {
    const world = worldWith({ perClient: 2 }, { upstream: limitedTo(1) });
    const [first, second] = [world.arrive(partner('a')), world.arrive(partner('a'))];
    expect([first.admission, second.admission]).toEqual([ADMITTED, undefined]);
    expect(refusal(world.arrive(partner('a')))).toEqual(['client_quota_exceeded', 1000]);
    world.gate.cancel(second.ticket, world.now);
    world.runUntil(NOON + 1000);
    expect(world.arrive(partner('a')).admission).toEqual(ADMITTED);
  });

  test('gives back the part of a request that another reason refuses, or whose wait ends', () => {
    const world = worldWith(
      { perClient: 2 },
      { upstream: { ...limitedTo(0.01), queue: { maxWait: 500, maxDepth: 9 } } },
    );
    serveMany(world, 1, partner('a'));
    for (let i = 0; i < 3; i += 1) expect(world.arrive(partner('a')).admission).toMatchObject({ why: 'over_share' });
  });

  test('changes no return time of other clients, and no share, when many of its requests are refused', () => {
    const returnTimes = (refusals: number): unknown[] => {
      const world = worldWith({ perClient: 1 }, { upstream: { ...limitedTo(1), queue: { maxWait: 0, maxDepth: 9 } } });
      serveMany(world, 1, partner('a'));
      for (let i = 0; i < refusals; i += 1) world.arrive(partner('a'));
      return ['b', 'c', 'd'].map((client) => refusal(world.arrive(partner(client))));
    };
    expect(returnTimes(50)).toEqual(returnTimes(0));
  });

  test('asks the client to return at its reset when the upstream rejects the request that used its last part', () => {
    const world = worldWith({ perClient: 1 });
    const queued = world.arrive(partner('a'));
    world.send(queued);
    world.answer(queued, response(429));
    expect(world.gate.retries.retryAfterRejection(queued.ticket, 2000, world.now)).toBe(12 * HOUR);
  });

  test('asks it so, too, if the Retry-After of the upstream ends before that, and leaves a later one as it is', () => {
    const retryAfterOf = (retryAfterMs: number, perClient: number): unknown => {
      const respond = () => ({ outcome: response(429, { retryAfterMs }), after: 10 });
      const world = worldWith({ perClient }, { respond });
      const record = world.call({ policy: { retry: SEND_ONCE }, client: 'a', className: 'partners', isProven: true });
      world.runUntil(NOON + 1000);
      return record.verdict?.kind === 'forward' ? record.verdict.retryAfterMs : record.verdict;
    };
    expect(retryAfterOf(2000, 1)).toBeGreaterThan(12 * HOUR - 1000);
    expect(retryAfterOf(2000, 2)).toBeUndefined();
    expect(retryAfterOf(13 * HOUR, 1)).toBeUndefined();
  });

  test('refuses nothing in observe mode, and counts', () => {
    const world = worldWith({ shared: 5, perClient: 1 }, { mode: 'observe' });
    for (let i = 0; i < 3; i += 1) {
      const queued = world.arrive(partner('a'));
      expect(queued.admission).toMatchObject({ kind: 'admitted' });
      world.serve(queued);
    }
    expect(world.arrive(partner('a')).admission).toMatchObject({
      wouldHave: { decision: 'refused', why: 'client_quota_exceeded' },
    });
    expect(remaining(world)).toEqual({ 'class:partners/day': 2 });
  });
});

describe('a reload', () => {
  test('keeps the counts of quotas that stay, and frees clients of those that it removes', () => {
    const world = worldWith({ shared: 5, perClient: 2 });
    serveMany(world, 2, partner('a'));
    const configure = (quotas: Quotas): void => {
      if (!(world.store instanceof MemoryStore)) throw new Error('another store');
      world.store.configure([upstreamSettings({ classQuotas: [ofClass(quotas)] })], 1000);
    };
    configure({ shared: 5, perClient: 3 });
    serveMany(world, 1, partner('a'));
    expect(world.arrive(partner('a')).admission).toMatchObject({ why: 'client_quota_exceeded' });
    configure({ shared: 5 });
    serveMany(world, 2, partner('a'));
    expect(world.arrive(partner('a')).admission).toMatchObject({ why: 'client_quota_exceeded' });
    configure({});
    serveMany(world, 5, partner('a'));
  });
});

test('a reload that removes a quota stores the counts of all its clients at once', () => {
  const journal = new MemoryJournal();
  const world = worldWith({ perClient: 100 }, { quotas: { wallTimeAt: (now) => now, journal } });
  for (let i = 0; i < 50; i += 1) serveMany(world, 1, partner(`c${i}`));
  const { writes } = journal;
  if (!(world.store instanceof MemoryStore)) throw new Error('another store');
  world.store.configure([upstreamSettings({ classQuotas: [ofClass({ shared: 5 })] })], 1000);
  expect(journal.writes).toBe(writes + 1);
});

describe('clients beyond the bound', () => {
  test('make room for each other, and keep their counts if these are stored', () => {
    const journal = new MemoryJournal();
    const world = worldWith({ perClient: 1 }, { maxTracked: 2, quotas: { wallTimeAt: (now) => now, journal } });
    for (const client of ['a', 'b', 'c']) serveMany(world, 1, partner(client));
    for (const client of ['a', 'b', 'c']) {
      const refused = world.arrive(partner(client));
      expect(refused.admission).toMatchObject({ why: 'client_quota_exceeded' });
      world.gate.onExchangeEnd(refused.ticket);
    }
    expect([...journal.stored.keys()].toSorted()).toEqual(
      ['a', 'b', 'c'].map((client) => `up class:partners/client/day ${client}`),
    );
    if (!(world.store instanceof MemoryStore)) throw new Error('another store');
    expect(world.store.bounds.find(({ name }) => name === 'client_quotas')).toEqual({
      name: 'client_quotas',
      used: 1,
      reached: 4,
    });
  });

  test('are stored a few at once for each request after a reload that lowers the bound', () => {
    const journal = new MemoryJournal();
    const world = worldWith({ perClient: 100 }, { quotas: { wallTimeAt: (now) => now, journal } });
    for (let i = 0; i < 50; i += 1) serveMany(world, 1, partner(`c${i}`));
    const { store } = world;
    if (!(store instanceof MemoryStore)) throw new Error('another store');
    store.configure([upstreamSettings({ classQuotas: [ofClass({ perClient: 100 })] })], 1000, 10);
    const reached: unknown[] = [];
    for (let i = 0; i < 4; i += 1) {
      const { writes } = journal;
      world.arrive(partner('c49'));
      expect(journal.writes).toBeLessThanOrEqual(writes + 1);
      reached.push(store.bounds.find(({ name }) => name === 'client_quotas')?.reached);
    }
    expect(reached).toEqual([16, 32, 40, 40]);
  });

  test('do not make room for others while their requests wait, are in flight, or may be given back', () => {
    const world = worldWith({ perClient: 2 }, { maxTracked: 1 });
    const [first, second] = [world.arrive(partner('a')), world.arrive(partner('a'))];
    world.send(first);
    serveMany(world, 1, partner('b'));
    serveMany(world, 1, partner('c'));
    expect(refusal(world.arrive(partner('a')))).toEqual(['client_quota_exceeded', 1000]);
    world.serve(second);
    expect(refusal(world.arrive(partner('a')))).toEqual(['client_quota_exceeded', 12 * HOUR]);
  });
});
