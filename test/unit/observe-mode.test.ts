import { describe, expect, test } from 'vitest';
import type { TideEvent } from '../../src/core/events/proxy-events.ts';
import type { Millis, Mode } from '../../src/core/exchange/attempt-outcome.ts';
import type { ClientGroup, Scenario } from '../../src/simulator/scenario.ts';
import { UPSTREAM } from '../../src/simulator/scenario.ts';
import type { UpstreamSpec } from '../../src/simulator/upstream/upstream-model.ts';
import { World as Simulation } from '../../src/simulator/engine/simulator.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { runLibrary } from '../support/library.ts';
import { failure, limitedTo, response, retryPolicy, upstreamSettings, World } from '../support/policy.ts';
import { TEN_CLIENTS } from '../support/clients.ts';

const LATENCY = { kind: 'exponential', mean: 50 } as const;
const BUCKET: UpstreamSpec = { limit: { kind: 'token-bucket', rate: 100, burst: 20 }, latency: LATENCY };

interface Ran {
  readonly sends: number;
  readonly offered: number;
  /** Of the decisions, those that refused. */
  readonly refused: number;
  readonly rates: readonly number[];
  readonly events: readonly TideEvent[];
  /** Every request was sent at once, and once: what answers took is what the upstream and the network took. */
  readonly sentOnce: boolean;
}

/** One minute of it; the first ten seconds, in which the limit is found, do not count but as sends. */
function run(mode: Mode, upstream: UpstreamSpec, clients: readonly ClientGroup[] = [TEN_CLIENTS], attempts = 1): Ran {
  const { name: _, ...settings } = upstreamSettings();
  const scenario: Scenario = {
    name: 'test',
    duration: 60_000,
    warmup: 0,
    upstream,
    network: 5,
    clients,
    replicas: 1,
    shared: false,
    pauses: [],
    policy: { ...settings, plan: { retry: retryPolicy({ attempts }), timeout: 10_000, perTryTimeout: 5000, mode } },
  };
  const events: TideEvent[] = [];
  const rates: number[] = [];
  let [sends, offered] = [0, 0];
  let sentOnce = true;
  const world: Simulation = new Simulation({
    scenario,
    seed: 1,
    makeStore: (_replica, random, listen) =>
      new MemoryStore({ upstreams: [{ name: UPSTREAM, ...scenario.policy }], maxTracked: 1000, random, listen }),
    listen: (event) => {
      if (rates.length >= 10) events.push(event);
    },
    observer: {
      onOffer: () => {
        offered += 1;
      },
      onConduct: () => {
        sends += 1;
      },
      onAnswer: ({ verdict, took, service }) => {
        if (verdict.attempts !== 1 || took - service > 1e-6) sentOnce = false;
      },
    },
  });
  world.run(1000, (now) => rates.push(world.gates[0]?.view(now).limits[0]?.rate ?? Number.NaN));
  const decisions = events.filter((event) => event.type === 'decision');
  const refused = decisions.filter(({ decision }) => decision === 'refused').length / decisions.length;
  return { sends, offered, refused, rates: rates.slice(10), events, sentOnce };
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

describe('observed at twice its limit, an upstream', () => {
  const ran = run('observe', BUCKET, [TEN_CLIENTS], 4);

  test('gets every request once, at once, and its answer is the client’s', () => {
    expect(ran.offered).toBeGreaterThan(11_500);
    expect(ran.offered - ran.sends).toBeLessThan(10); // on their way when it ended
    expect(ran.sentOnce).toBe(true);
  });

  test('shows its limit: the rate is within 15 % of it, second after second', () => {
    for (const rate of ran.rates) expect(Math.abs(rate - 100)).toBeLessThan(15);
  });

  test('is neither blocked nor cut again and again: an overrun is one long signal', () => {
    expect(ran.events.filter(({ type }) => type === 'limit-state' || type === 'cut')).toEqual([]);
  });

  test('would have been asked again: that is told, and its budget is kept', () => {
    const retries = ran.events.filter((event) => event.type === 'retry');
    expect(retries.length).toBeGreaterThan(100);
    expect(new Set(retries.map(({ reason }) => reason))).toEqual(new Set(['status_429']));
  });
});

describe('what would have been refused is what is refused when it is enforced, within 5 % of all', () => {
  test.each<[string, UpstreamSpec, readonly ClientGroup[]]>([
    ['at twice the limit', BUCKET, [TEN_CLIENTS]],
    ['at five times the limit', BUCKET, [{ ...TEN_CLIENTS, rate: 50 }]],
    ['a little above the limit', BUCKET, [{ ...TEN_CLIENTS, rate: 11 }]],
    ['below the limit', BUCKET, [{ ...TEN_CLIENTS, rate: 5 }]],
    ['with a Retry-After', { ...BUCKET, hints: 'retry-after' }, [TEN_CLIENTS]],
    ['with a quota', { ...BUCKET, hints: 'ratelimit' }, [TEN_CLIENTS]],
    [
      'by windows of a second',
      { limit: { kind: 'fixed-window', limit: 100, window: 1000 }, latency: LATENCY },
      [TEN_CLIENTS],
    ],
    ['by windows of ten seconds', { limit: { kind: 'fixed-window', limit: 1000, window: 10_000 } }, [TEN_CLIENTS]],
    ['with slow answers', { ...BUCKET, latency: { kind: 'exponential', mean: 800 } }, [TEN_CLIENTS]],
    [
      'with one greedy client',
      BUCKET,
      [
        { ...TEN_CLIENTS, rate: 5 },
        { ...TEN_CLIENTS, name: 'greedy', count: 1, rate: 150 },
      ],
    ],
    [
      'in an outage',
      { limit: { kind: 'unlimited' }, outages: [{ from: 20_000, to: 30_000, how: 'refuse' }] },
      [TEN_CLIENTS],
    ],
  ])('%s', (_, upstream, clients) => {
    const observed = run('observe', upstream, clients);
    expect(Math.abs(observed.refused - run('enforce', upstream, clients).refused)).toBeLessThan(0.05);
    expect(observed.sentOnce).toBe(true);
  });

  test('but of an upstream that allows no bursts, unpaced traffic shows less than it would give', () => {
    const gcra: UpstreamSpec = { limit: { kind: 'gcra', rate: 100, burst: 1 }, latency: LATENCY };
    expect(mean(run('observe', gcra).rates)).toBeLessThan(70);
    expect(mean(run('enforce', gcra).rates.slice(-100))).toBeGreaterThan(90);
  });
});

test('the scenario of the library comes to what it is for: the limit is known, and nothing is refused', () => {
  const { report, goals } = runLibrary('observe');
  expect(goals.filter(({ met }) => !met)).toEqual([]);
  expect(goals.map(({ goal }) => goal)).toContain('refused');
  for (const { rate, limit } of report.series.filter(({ at }) => at > 15_000)) {
    expect(limit).toBe(100);
    expect(Math.abs(rate - limit)).toBeLessThan(0.15 * limit);
  }
  expect(report.counts.sends / 105).toBeGreaterThan(190); // all that is wanted
});

test('a limit that changes is followed', () => {
  const changing = { ...BUCKET, steps: [{ at: 30_000, limit: 50 }] };
  const { rates } = run('observe', changing);
  expect(mean(rates.slice(10, 20))).toBeCloseTo(95, -1);
  expect(mean(rates.slice(30))).toBeCloseTo(47.5, -1);
});

test('errors that go on do not halve the rate again and again', () => {
  const failing = {
    limit: { kind: 'unlimited' },
    latency: LATENCY,
    errors: [{ probability: 0.6, from: 20_000 }],
  } as const;
  const { rates, events } = run('observe', failing);
  expect(Math.min(...rates)).toBeGreaterThan(50);
  expect(events.filter(({ type }) => type === 'limit-state').length).toBeLessThan(120); // in 40 s, of 8000 answers
});

describe('one request, observed', () => {
  const KEYED = { method: 'POST', keyed: true };
  const decisions = (world: World) => world.ofType('decision').map(({ decision, why }) => [decision, why]);

  function observing(rate: number, maxWait: Millis, maxTracked = 1000): World {
    const upstream = { ...limitedTo(rate), queue: { maxWait, maxDepth: 10 } };
    return new World({ mode: 'observe', upstream, maxTracked });
  }

  test('passes, would have waited, or would have been refused; it is sent in any case, and knows', () => {
    const world = observing(10, 150);
    const stories = [world.call(), world.call(), world.call()];
    world.runUntil(10);
    expect(stories.map(({ drive }) => drive.wouldHave)).toEqual([
      { decision: 'passed', why: undefined },
      { decision: 'queued', why: undefined },
      { decision: 'refused', why: 'over_share' },
    ]);
    for (const { asked, endedAt, drive } of stories) {
      expect(asked).toEqual(['body', 'send', 'forward']);
      expect(endedAt).toBe(10);
      expect(drive.queued).toBe(0);
    }
    expect(decisions(world)).toEqual([
      ['passed', undefined],
      ['queued', undefined],
      ['refused', 'over_share'],
    ]);
  });

  test('that would have waited takes its token when its turn comes; a refused one takes none', () => {
    const world = observing(10, 150);
    for (let i = 0; i < 3; i += 1) world.call();
    world.runUntil(105);
    expect(world.ofType('dequeued')).toMatchObject([{ admitted: true, waited: 100 }]);
    world.runUntil(205);
    world.call();
    expect(world.events.filter(({ type }) => type === 'decision').at(-1)).toMatchObject({ decision: 'passed' });
  });

  test('keeps its client remembered while it would be waiting, and no longer', () => {
    const world = observing(10, 1000, 3);
    for (const client of ['a', 'b', 'c']) world.call({ client });
    world.runUntil(50); // b and c have been answered, and would still wait
    world.call({ client: 'd' });
    expect(world.ofType('client-evicted')).toHaveLength(1); // a
    world.runUntil(2000);
    for (const client of ['e', 'f', 'g']) world.call({ client });
    expect(world.ofType('client-evicted')).toHaveLength(4);
  });

  test('is held by a Retry-After in word only', () => {
    const world = observing(10, 1000);
    world.respond = () => ({ outcome: response(429, { retryAfter: 5000 }), after: 10 });
    world.call({ plan: { retry: retryPolicy({ attempts: 1 }) } });
    world.runUntil(1000);
    const held = world.call();
    world.runUntil(2000);
    expect(held.drive.wouldHave).toEqual({ decision: 'refused', why: 'held' });
    expect(held).toMatchObject({ status: 429, endedAt: 1010 });
  });

  test('passes a blocked upstream', () => {
    const world = observing(100, 0);
    world.respond = () => ({ outcome: failure('connect', false), after: 5 });
    const stories = world.stream(100, 2000, { plan: { retry: retryPolicy({ attempts: 1 }) } });
    world.runUntil(1000);
    expect(world.limit.meter.phase).toBe('blocked');
    world.respond = () => ({ outcome: response(200), after: 5 });
    world.runUntil(3000);
    expect(world.limit.meter.phase).not.toBe('blocked');
    expect(stories.every(({ sends }) => sends.length === 1)).toBe(true);
    expect(decisions(world)).toContainEqual(['refused', 'blocked']);
  });

  test('is not retried; that it would have been is told, and paid from the budget', () => {
    const world = new World({ mode: 'observe', upstream: { budget: { ratio: 0, burst: 1 } } });
    world.respond = () => ({ outcome: response(503), after: 10 });
    const [first, second] = [world.call({ facts: KEYED }), world.call({ facts: KEYED })];
    world.runUntil(1000);
    expect(first.verdict).toEqual({
      kind: 'forward',
      unknown: false,
      attempts: 1,
      retryEnd: undefined,
      wouldRetry: 'status_5xx',
    });
    expect(second.verdict).toMatchObject({ attempts: 1, retryEnd: 'budget_exhausted' });
    expect(world.ofType('retry')).toMatchObject([{ reason: 'status_5xx', delay: 100 }]);
    expect(world.ofType('attempt')).toHaveLength(2);
  });

  test('that would have been refused would have had no answer to retry', () => {
    const world = observing(10, 0);
    world.respond = () => ({ outcome: response(503), after: 10 });
    world.call();
    const refused = world.call();
    world.runUntil(1000);
    expect(refused.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 1, retryEnd: undefined });
    expect(world.ofType('retry')).toHaveLength(1);
  });

  test('is told as unknown where it is', () => {
    const world = new World({ mode: 'observe' });
    world.respond = () => ({ outcome: failure('reset', true), after: 10 });
    const keyed = world.call({ facts: KEYED });
    const unkeyed = world.call({ facts: { method: 'POST' } });
    world.runUntil(1000);
    expect(keyed.verdict).toMatchObject({ kind: 'unknown', reason: 'reset', attempts: 1, wouldRetry: 'reset' });
    expect(unkeyed.verdict).toMatchObject({ kind: 'unknown', attempts: 1, retryEnd: 'not_idempotent' });
  });
});
