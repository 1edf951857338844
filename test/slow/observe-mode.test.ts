import { describe, expect, test } from 'vitest';
import type { ProxyEvent } from '../../src/core/events/proxy-events.ts';
import type { Millis } from '../../src/core/scalars.ts';
import type { EnforcementMode } from '../../src/core/admission/gate-decision.ts';
import type { ClientGroup, Scenario } from '../../src/simulator/scenario.ts';
import { UPSTREAM_NAME } from '../../src/simulator/scenario.ts';
import type { UpstreamSpec } from '../../src/simulator/upstream/upstream-model.ts';
import { Simulator as Simulation } from '../../src/simulator/engine/simulator.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { runLibraryScenario } from '../support/core/scenario-library.ts';
import { failure, limitedTo, response, retryPolicy, upstreamSettings } from '../support/core/policy-builders.ts';
import { World } from '../support/core/world.ts';
import { TEN_CLIENTS } from '../support/core/ten-clients.ts';

const LATENCY = { kind: 'exponential', mean: 50 } as const;
const BUCKET: UpstreamSpec = { limit: { kind: 'token-bucket', rate: 100, burst: 20 }, latency: LATENCY };

interface Ran {
  readonly sends: number;
  readonly offered: number;
  /** The number of refusing decisions. */
  readonly refused: number;
  readonly rates: readonly number[];
  readonly events: readonly ProxyEvent[];
  /** Every request was sent once and without delay: response times consist of upstream and network latency. */
  readonly sentOnce: boolean;
}

/** One minute of the scenario; the first ten seconds, in which the limit is found, count only as sends. */
function run(
  mode: EnforcementMode,
  upstream: UpstreamSpec,
  clients: readonly ClientGroup[] = [TEN_CLIENTS],
  attempts = 1,
): Ran {
  const { name: _, ...settings } = upstreamSettings();
  const scenario: Scenario = {
    name: 'test',
    duration: 60_000,
    warmup: 0,
    upstream,
    networkLatency: 5,
    clients,
    replicas: 1,
    shared: false,
    pauses: [],
    policy: { ...settings, plan: { retry: retryPolicy({ attempts }), timeout: 10_000, perTryTimeout: 5000, mode } },
  };
  const events: ProxyEvent[] = [];
  const rates: number[] = [];
  let [sends, offered] = [0, 0];
  let sentOnce = true;
  const world: Simulation = new Simulation({
    scenario,
    seed: 1,
    makeStore: (_replica, random, listen) =>
      new MemoryStore({ upstreams: [{ name: UPSTREAM_NAME, ...scenario.policy }], maxTracked: 1000, random, listen }),
    listen: (event) => {
      if (rates.length >= 10) events.push(event);
    },
    observer: {
      onOffer: () => {
        offered += 1;
      },
      onUpstreamDecision: () => {
        sends += 1;
      },
      onRequestEnd: ({ verdict, took, service }) => {
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

describe('an upstream in observe mode at twice its limit', () => {
  const ran = run('observe', BUCKET, [TEN_CLIENTS], 4);

  test('receives every request once, without delay', () => {
    expect(ran.offered).toBeGreaterThan(11_500);
    expect(ran.offered - ran.sends).toBeLessThan(10); // in flight at the end
    expect(ran.sentOnce).toBe(true);
  });

  test('has its limit learned: the rate stays within 15 % of it in every second', () => {
    for (const rate of ran.rates) expect(Math.abs(rate - 100)).toBeLessThan(15);
  });

  test('is neither blocked nor cut repeatedly, because an overrun is one long signal', () => {
    expect(ran.events.filter(({ type }) => type === 'limit-state' || type === 'cut')).toEqual([]);
  });

  test('has the retries reported that would have been made, without a charge to their budget', () => {
    const retries = ran.events.filter((event) => event.type === 'retry');
    expect(retries.length).toBeGreaterThan(100);
    expect(new Set(retries.map(({ reason }) => reason))).toEqual(new Set(['status_429']));
  });
});

describe('observe mode predicts the refusals of enforce mode within 5 % of all requests', () => {
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

  test('an upstream without bursts accepts less of unpaced traffic than its limit', () => {
    const gcra: UpstreamSpec = { limit: { kind: 'gcra', rate: 100, burst: 1 }, latency: LATENCY };
    expect(mean(run('observe', gcra).rates)).toBeLessThan(70);
    expect(mean(run('enforce', gcra).rates.slice(-100))).toBeGreaterThan(90);
  });
});

test('the scenario of the library meets its goal: the limit is learned, and no request is refused', () => {
  const { report, goals } = runLibraryScenario('observe');
  expect(goals.filter(({ met }) => !met)).toEqual([]);
  expect(goals.map(({ goal }) => goal)).toContain('refused');
  for (const { rate, limit } of report.series.filter(({ at }) => at > 15_000)) {
    expect(limit).toBe(100);
    expect(Math.abs(rate - limit)).toBeLessThan(0.15 * limit);
  }
  expect(report.counts.sends / 105).toBeGreaterThan(190); // the whole demand
});

test('follows a limit that changes', () => {
  const changing = { ...BUCKET, steps: [{ at: 30_000, limit: 50 }] };
  const { rates } = run('observe', changing);
  expect(mean(rates.slice(10, 20))).toBeCloseTo(95, -1);
  expect(mean(rates.slice(30))).toBeCloseTo(47.5, -1);
});

test('persistent errors do not halve the rate repeatedly', () => {
  const failing = {
    limit: { kind: 'unlimited' },
    latency: LATENCY,
    errors: [{ probability: 0.6, from: 20_000 }],
  } as const;
  const { rates, events } = run('observe', failing);
  expect(Math.min(...rates)).toBeGreaterThan(50);
  expect(events.filter(({ type }) => type === 'limit-state').length).toBeLessThan(120); // in 40 s, of 8000 responses
});

describe('one request in observe mode', () => {
  const KEYED = { method: 'POST', keyed: true };
  const decisions = (world: World) => world.ofType('decision').map(({ decision, why }) => [decision, why]);

  function observing(rate: number, maxWait: Millis, maxTracked = 1000): World {
    const upstream = { ...limitedTo(rate), queue: { maxWait, maxDepth: 10 } };
    return new World({ mode: 'observe', upstream, maxTracked });
  }

  test('is sent whether it passes, would have waited, or would have been refused, and its record states which', () => {
    const world = observing(10, 150);
    const records = [world.call(), world.call(), world.call()];
    world.runUntil(10);
    expect(records.map(({ driver }) => driver.wouldHave)).toEqual([
      { decision: 'passed', why: undefined },
      { decision: 'queued', why: undefined },
      { decision: 'refused', why: 'over_share' },
    ]);
    for (const { effects, endedAt, driver } of records) {
      expect(effects).toEqual(['body', 'send', 'forward']);
      expect(endedAt).toBe(10);
      expect(driver.queued).toBe(0);
    }
    expect(decisions(world)).toEqual([
      ['passed', undefined],
      ['queued', undefined],
      ['refused', 'over_share'],
    ]);
  });

  test('takes its token in its turn if it would have waited, and none if it would have been refused', () => {
    const world = observing(10, 150);
    for (let i = 0; i < 3; i += 1) world.call();
    world.runUntil(105);
    expect(world.ofType('dequeued')).toMatchObject([{ admitted: true, waited: 100 }]);
    world.runUntil(205);
    world.call();
    expect(world.events.filter(({ type }) => type === 'decision').at(-1)).toMatchObject({ decision: 'passed' });
  });

  test('keeps its client in memory while it would have waited, and no longer', () => {
    const world = observing(10, 1000, 3);
    for (const client of ['a', 'b', 'c']) world.call({ client });
    world.runUntil(50); // b and c have been answered, and would still wait in enforce mode
    world.call({ client: 'd' });
    expect(world.ofType('client-evicted')).toHaveLength(1); // a
    world.runUntil(2000);
    for (const client of ['e', 'f', 'g']) world.call({ client });
    expect(world.ofType('client-evicted')).toHaveLength(4);
  });

  test('has a Retry-After hold reported, and is sent', () => {
    const world = observing(10, 1000);
    world.respond = () => ({ outcome: response(429, { retryAfterMs: 5000 }), after: 10 });
    world.call({ policy: { retry: retryPolicy({ attempts: 1 }) } });
    world.runUntil(1000);
    const held = world.call();
    world.runUntil(2000);
    expect(held.driver.wouldHave).toEqual({ decision: 'refused', why: 'held' });
    expect(held).toMatchObject({ status: 429, endedAt: 1010 });
  });

  test('is sent to a blocked upstream', () => {
    const world = observing(100, 0);
    world.respond = () => ({ outcome: failure('connect', false), after: 5 });
    const records = world.stream(100, 2000, { policy: { retry: retryPolicy({ attempts: 1 }) } });
    world.runUntil(1000);
    expect(world.limit.meter.phase).toBe('blocked');
    world.respond = () => ({ outcome: response(200), after: 5 });
    world.runUntil(3000);
    expect(world.limit.meter.phase).not.toBe('blocked');
    expect(records.every(({ sends }) => sends.length === 1)).toBe(true);
    expect(decisions(world)).toContainEqual(['refused', 'blocked']);
  });

  test('is not retried, but the retry is reported and charged to the budget', () => {
    const world = new World({ mode: 'observe', upstream: { budget: { ratio: 0, burst: 1 } } });
    world.respond = () => ({ outcome: response(503), after: 10 });
    const [first, second] = [world.call({ facts: KEYED }), world.call({ facts: KEYED })];
    world.runUntil(1000);
    expect(first.verdict).toEqual({
      kind: 'forward',
      unknown: false,
      attempts: 1,
      retryOutcome: undefined,
      wouldRetry: 'status_5xx',
    });
    expect(second.verdict).toMatchObject({ attempts: 1, retryOutcome: 'budget_exhausted' });
    expect(world.ofType('retry')).toMatchObject([{ reason: 'status_5xx', delay: 100 }]);
    expect(world.ofType('attempt')).toHaveLength(2);
  });

  test('is not reported as retried if it would have been refused', () => {
    const world = observing(10, 0);
    world.respond = () => ({ outcome: response(503), after: 10 });
    world.call();
    const refused = world.call();
    world.runUntil(1000);
    expect(refused.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 1, retryOutcome: undefined });
    expect(world.ofType('retry')).toHaveLength(1);
  });

  test('is reported as unknown if its outcome is unknown', () => {
    const world = new World({ mode: 'observe' });
    world.respond = () => ({ outcome: failure('reset', true), after: 10 });
    const keyed = world.call({ facts: KEYED });
    const unkeyed = world.call({ facts: { method: 'POST' } });
    world.runUntil(1000);
    expect(keyed.verdict).toMatchObject({ kind: 'unknown', reason: 'reset', attempts: 1, wouldRetry: 'reset' });
    expect(unkeyed.verdict).toMatchObject({ kind: 'unknown', attempts: 1, retryOutcome: 'not_idempotent' });
  });
});
