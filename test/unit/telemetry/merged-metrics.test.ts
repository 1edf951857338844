import { expect, test } from 'vitest';
import type { ProcessMetrics } from '../../../src/telemetry/metrics/exposition/merged-metrics.ts';
import { MergedMetrics, readMetrics } from '../../../src/telemetry/metrics/exposition/merged-metrics.ts';
import type { MetricsOptions } from '../../../src/telemetry/metrics/metrics.ts';
import { createMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import type { GateView, LimitView } from '../../../src/core/events/gate-views.ts';

const LIMIT: LimitView = {
  upstream: 'api',
  nested: '',
  scope: 'upstream',
  key: '',
  state: 'restoring',
  rate: 100,
  ceiling: 120,
  concurrencyLimit: undefined,
  blockedUntil: undefined,
  quotaLeft: undefined,
  queued: 0,
  inFlight: 0,
};

function viewOf(limit: Partial<LimitView>, allowance: number, budget: number | undefined): GateView {
  return {
    limits: [{ ...LIMIT, ...limit }],
    clients: {
      tracked: 2,
      byState: { normal: 2, held: 0, backoff: 0, cooldown: 0, restoring: 0 },
      allowance: { min: allowance, mean: allowance },
    },
    budgets: new Map(budget === undefined ? [] : [['api', budget]]),
  };
}

function metricsOf(view: GateView, more: Partial<MetricsOptions> = {}): ReturnType<typeof createMetrics> {
  return createMetrics({
    routes: ['/'],
    upstreams: ['api'],
    view: () => view,
    now: () => 0,
    wallClock: () => 0,
    replayBufferBytes: () => 10,
    bounds: () => [],
    build: { version: 'test' },
    mode: 'enforce',
    ...more,
  });
}

/** A primary and two workers with metrics of their own. @param store shared by them, instead of the primary's limits */
function three(store?: 'redis'): {
  merged: MergedMetrics;
  answers: Map<number, readonly ProcessMetrics[]>;
  count: (worker: 1 | 2) => Promise<void>;
} {
  const view = viewOf({}, 1, undefined);
  const own = metricsOf(store === undefined ? view : { ...view, limits: [] }, {
    workers: () => ({ serving: 2, restarts: 3 }),
    store,
    replayBufferBytes: () => 0,
  });
  const workers = [
    metricsOf(viewOf({ rate: 50, queued: 3, state: 'open' }, 0.5, 0.2), {
      bounds: () => [{ name: 'requests', used: 0.2, reached: 1 }],
      store,
    }),
    metricsOf(viewOf({ rate: 50, queued: 4, state: 'open' }, 0.7, 0.6), {
      bounds: () => [{ name: 'requests', used: 0.7, reached: 2 }],
      store,
    }),
  ] as const;
  const answers = new Map<number, readonly ProcessMetrics[]>();
  return {
    merged: new MergedMetrics(own.registry, () => Promise.resolve(answers)),
    answers,
    count: async (worker) => {
      const { listen, registry } = workers[worker - 1]!;
      listen({ type: 'decision', upstream: 'api', decision: 'passed', why: undefined });
      listen({ type: 'store-request', store: 'redis', op: 'lease', result: 'ok', duration: 3 });
      listen({ type: 'store-degraded', store: 'redis', isDegraded: true });
      // As it is cloned between processes.
      answers.set(worker, structuredClone(await readMetrics(registry)));
    },
  };
}

function read(exposition: string, series: string): number {
  const line = exposition.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? Number.NaN : Number(line.slice(series.length + 1));
}

const PASSED = 'tidegate_ratelimit_decisions_total{upstream="api",decision="passed"}';

test('each metric is merged according to its meaning', async () => {
  const { merged, count } = three();
  await count(1);
  await count(2);
  const text = await merged.metrics();
  const of = (series: string): number => read(text, series);
  expect(of(PASSED)).toBe(2);
  expect(of('tidegate_queue_depth{upstream="api"}')).toBe(7);
  expect(of('tidegate_clients_tracked')).toBe(6);
  expect(of('tidegate_replay_buffer_bytes')).toBe(20);
  expect(of('tidegate_ratelimit_rate_requests_per_second{upstream="api",scope="upstream"}')).toBe(100);
  expect(of('tidegate_ratelimit_state{upstream="api",state="open"}')).toBe(0);
  expect(of('tidegate_ratelimit_state{upstream="api",state="restoring"}')).toBe(1);
  expect(of('tidegate_bound_used_ratio{bound="requests"}')).toBe(0.7);
  expect(of('tidegate_bound_reached_total{bound="requests"}')).toBe(3);
  expect(of('tidegate_client_allowance_ratio{stat="min"}')).toBe(0.5);
  expect(of('tidegate_client_allowance_ratio{stat="mean"}')).toBeCloseTo(0.6, 9);
  expect(of('tidegate_retry_budget_available_ratio{upstream="api"}')).toBeCloseTo(0.4, 9);
  expect(of('tidegate_mode{mode="enforce"}')).toBe(1);
  expect(of('tidegate_build_info{version="test"}')).toBe(1);
  expect(of('tidegate_workers')).toBe(2);
  expect(of('tidegate_worker_restarts_total')).toBe(3);
  expect(text.match(/^process_start_time_seconds /gm)).toHaveLength(1);
});

test('each worker reports the limits of a shared store, which is degraded if one worker does not reach it', async () => {
  const { merged, count } = three('redis');
  await count(1);
  await count(2);
  const text = await merged.metrics();
  const of = (series: string): number => read(text, series);
  expect(of('tidegate_store_degraded{store="redis"}')).toBe(1);
  expect(of('tidegate_store_requests_total{store="redis",op="lease",result="ok"}')).toBe(2);
  expect(of('tidegate_store_duration_seconds_sum{store="redis",op="lease",result="ok"}')).toBeCloseTo(0.006, 9);
  expect(of('tidegate_ratelimit_rate_requests_per_second{upstream="api",scope="upstream"}')).toBe(50);
  expect(of('tidegate_ratelimit_state{upstream="api",state="open"}')).toBe(1);
  expect(of('tidegate_ratelimit_state{upstream="api",state="restoring"}')).toBe(0);
});

test('the newest of several exemplars of a bucket is shown', async () => {
  const answers = new Map<number, readonly ProcessMetrics[]>();
  const merged = new MergedMetrics(metricsOf(viewOf({}, 1, undefined)).registry, () => Promise.resolve(answers));
  for (const [worker, wallClock, request] of [
    [1, 7000, 'older'],
    [2, 9000, 'newest'],
    [3, 8000, 'old'],
  ] as const) {
    const { listen, registry } = metricsOf(viewOf({}, 1, undefined), { wallClock: () => wallClock });
    listen({ type: 'attempt', upstream: 'api', attempt: 1, code: 200, took: 3, request });
    answers.set(worker, structuredClone(await readMetrics(registry)));
  }
  const bucket = 'tidegate_upstream_attempt_duration_seconds_bucket{upstream="api",code_class="2xx",le="0.005"}';
  expect(await merged.metrics('openmetrics')).toContain(`\n${bucket} 3 # {request_id="newest"} 0.003 9\n`);
  expect(await merged.metrics()).toContain(`\n${bucket} 3\n`);
});

test('counters do not fall when a worker does not respond, exits or is replaced, and its gauges are removed', async () => {
  const { merged, count, answers } = three();
  await count(1);
  await count(2);
  await merged.metrics();
  answers.delete(1); // no response
  const silent = await merged.metrics();
  expect([read(silent, PASSED), read(silent, 'tidegate_queue_depth{upstream="api"}')]).toEqual([2, 7]);
  merged.onWorkerExit(1);
  const ended = await merged.metrics();
  expect([read(ended, PASSED), read(ended, 'tidegate_queue_depth{upstream="api"}')]).toEqual([2, 4]);
  await count(2);
  expect(read(await merged.metrics(), PASSED)).toBe(3);
  merged.onWorkerExit(2);
  merged.onWorkerExit(2); // a repeat has no effect
  expect(read(await merged.metrics(), PASSED)).toBe(3);
});
