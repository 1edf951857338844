import { describe, expect, test } from 'vitest';
import type { GateView } from '../../../src/core/events/gate-views.ts';
import type { EventSink, ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import { EventQueue } from '../../../src/simulator/engine/event-queue.ts';
import type { LimitModelSpec } from '../../../src/simulator/limit-models/limit-model-spec.ts';
import type { Scenario } from '../../../src/simulator/scenario.ts';
import { UPSTREAM_NAME } from '../../../src/simulator/scenario.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { SimulatedRequestResult } from '../../../src/simulator/engine/simulator.ts';
import { Simulator } from '../../../src/simulator/engine/simulator.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { retryPolicy, upstreamSettings } from '../../support/core/policy-builders.ts';
import { TEN_CLIENTS } from '../../support/core/ten-clients.ts';

interface Ran {
  readonly world: Simulator;
  readonly answers: readonly (SimulatedRequestResult & { readonly at: number })[];
  /** Requests that reached the upstream, and those that it refused. */
  readonly sends: number;
  readonly rejected: number;
  readonly offered: number;
  readonly heldBack: number;
}

function scenarioOf(limit: LimitModelSpec, changes: Partial<Scenario> = {}): Scenario {
  const { name: _, ...settings } = upstreamSettings();
  return {
    name: 'test',
    duration: 30_000,
    warmup: 0,
    upstream: { limit, latency: { kind: 'exponential', mean: 50 } },
    networkLatency: 5,
    clients: [TEN_CLIENTS],
    replicas: 1,
    shared: false,
    pauses: [],
    policy: { ...settings, plan: { retry: retryPolicy(), timeout: 10_000, perTryTimeout: 5000 } },
    ...changes,
  };
}

interface Watch {
  readonly listen?: EventSink;
  /** Called each second, with the first gate. */
  readonly tick?: (view: GateView) => void;
}

function run(scenario: Scenario, seed = 1, { listen, tick }: Watch = {}): Ran {
  const answers: (SimulatedRequestResult & { readonly at: number })[] = [];
  let sends = 0;
  let rejected = 0;
  let offered = 0;
  let heldBack = 0;
  const { policy } = scenario;
  const world: Simulator = new Simulator({
    scenario,
    seed,
    ...(listen === undefined ? {} : { listen }),
    makeStore: (_, random, listen) =>
      new MemoryStore({ upstreams: [{ name: UPSTREAM_NAME, ...policy }], maxTracked: 1000, random, listen }),
    observer: {
      onOffer: (_, sent) => {
        offered += 1;
        if (!sent) heldBack += 1;
      },
      onUpstreamDecision: ({ kind }) => {
        sends += 1;
        if (kind === 'throttle') rejected += 1;
      },
      onRequestEnd: (answer) => answers.push({ ...answer, at: world.now() }),
    },
  });
  world.run(1000, (now) => {
    const [gate] = world.gates;
    if (gate !== undefined) tick?.(gate.view(now));
  });
  return { world, answers, sends, rejected, offered, heldBack };
}

/** Successes in the second half, after the search for the limit. */
const lateSuccesses = ({ answers }: Ran) => answers.filter(({ status, at }) => status === 200 && at >= 15_000).length;

describe('the simulator', () => {
  test('runs the same for equal seeds, and differently for others', () => {
    const scenario = scenarioOf({ kind: 'token-bucket', rate: 100, burst: 20 });
    const summaryOf = ({ answers }: Ran) => answers.map(({ member, status, took }) => [member, status, took]);
    expect(summaryOf(run(scenario, 7))).toEqual(summaryOf(run(scenario, 7)));
    expect(summaryOf(run(scenario, 8))).not.toEqual(summaryOf(run(scenario, 7)));
  });

  test('lets the gate learn a limit that is not configured', () => {
    const ran = run(scenarioOf({ kind: 'token-bucket', rate: 100, burst: 20 }));
    expect(ran.offered).toBeGreaterThan(5800); // Poisson of 6000
    expect(lateSuccesses(ran)).toBeGreaterThan(0.95 * 1500);
    expect(ran.rejected / ran.sends).toBeLessThan(0.02);
    expect(ran.world.gates[0]?.view(30_000).limits[0]?.state).not.toBe('open');
  });

  test('adds only network latency to an upstream without a limit', () => {
    const ran = run(scenarioOf({ kind: 'unlimited' }));
    expect(ran.answers.every(({ status }) => status === 200)).toBe(true);
    for (const { took, service } of ran.answers) expect(took).toBeCloseTo(service, 6);
    expect(ran.offered - ran.sends).toBeLessThan(10); // in flight at the end
  });

  test('finds a concurrency limit, and keeps its places in use', () => {
    const scenario = scenarioOf({ kind: 'concurrency', limit: 20 }, { clients: [{ ...TEN_CLIENTS, rate: 50 }] });
    const places: (number | undefined)[] = [];
    const events: ProxyEvent[] = [];
    // The time to find it is random: 12 s to a minute, over eight seeds.
    const ran = run({ ...scenario, duration: 120_000 }, 1, {
      listen: (event) => events.push(event),
      tick: ({ limits }) => places.push(limits[0]?.concurrencyLimit),
    });
    expect(events.some((event) => event.type === 'cut' && event.cause === 'places')).toBe(true);
    const late = places.slice(90);
    expect(late.length).toBeGreaterThanOrEqual(29);
    for (const each of late) expect(Math.abs((each ?? Number.POSITIVE_INFINITY) - 20)).toBeLessThanOrEqual(3);
    // Little's law: at the gate each holds its place for 60 ms, of which 10 are network latency.
    const served = ran.answers.filter(({ status, at }) => status === 200 && at >= 90_000).length;
    expect(served / 30).toBeGreaterThan((0.9 * 20) / 0.06);
  });

  test('delays clients that wait for a Retry-After', () => {
    const clients = [{ ...TEN_CLIENTS, honoursRetryAfter: true }];
    const ran = run(scenarioOf({ kind: 'token-bucket', rate: 100, burst: 20 }, { clients }));
    const refused = ran.answers.filter(({ verdict }) => verdict.kind === 'refuse').length;
    expect(ran.heldBack).toBeGreaterThan(refused);
    expect(lateSuccesses(ran)).toBeGreaterThan(0.9 * 1500);
  });

  test('delays clients for the Retry-After of an upstream too, which is forwarded', () => {
    const scenario = scenarioOf({ kind: 'token-bucket', rate: 100, burst: 20 });
    const policy = { ...scenario.policy, plan: { ...scenario.policy.plan, mode: 'observe' as const } };
    const clients = [{ ...TEN_CLIENTS, honoursRetryAfter: true }];
    const upstream = { ...scenario.upstream, hints: 'retry-after' as const };
    const ran = run({ ...scenario, policy, clients, upstream });
    expect(ran.answers.every(({ verdict }) => verdict.kind === 'forward')).toBe(true);
    expect(ran.heldBack).toBeGreaterThan(0.1 * ran.offered);
  });

  test('simulates an upstream that is down as failed connections, and finds its recovery', () => {
    const scenario = scenarioOf({ kind: 'unlimited' });
    const outages = [{ from: 10_000, to: 15_000, how: 'refuse' as const }];
    const ran = run({ ...scenario, upstream: { ...scenario.upstream, outages } });
    const late = ran.world.gates[0]?.view(30_000).limits[0];
    expect(late?.state).toBe('open');
    expect(ran.answers.some(({ verdict }) => verdict.kind === 'refuse' && verdict.why === 'blocked')).toBe(true);
  });
});

test('events are processed in order of time, and those at equal times in the order of insertion', () => {
  const random = seededRandom(3);
  const queue = new EventQueue<number>();
  const pushed: { at: number; what: number }[] = [];
  const popped: number[] = [];
  for (let what = 0; what < 5000; what += 1) {
    const at = Math.floor(random() * 50);
    queue.push(at, what);
    pushed.push({ at, what });
  }
  for (let what = queue.pop(); what !== undefined; what = queue.pop()) popped.push(what);
  expect(popped).toEqual(pushed.toSorted((a, b) => a.at - b.at || a.what - b.what).map(({ what }) => what));
  expect(queue.size).toBe(0);
  expect(queue.nextAt).toBe(Number.POSITIVE_INFINITY);
});
