import { describe, expect, test } from 'vitest';
import { simulateScenario } from '../../../src/simulator/simulate-scenario.ts';
import type { ScenarioInput } from '../../../src/simulator/scenario-file/scenario-schema.ts';
import { ScenarioSchema } from '../../../src/simulator/scenario-file/scenario-schema.ts';
import { upstreamCapacity } from '../../../src/simulator/report/upstream-capacity.ts';
import { TEN_CLIENTS } from '../../support/core/ten-clients.ts';

/** Two workers of 100 ms: 20 requests a second. The proxy observes, so that each request is sent once, at once. */
function simulate(changes: Partial<ScenarioInput> = {}) {
  const input: ScenarioInput = {
    duration: '60s',
    network: '0s',
    upstream: { limit: { kind: 'workers', workers: 2 }, latency: '100ms' },
    clients: [{ rate: '10/s' }],
    mode: 'observe',
    ...changes,
  };
  return simulateScenario('workers', ScenarioSchema.parse(input)).report;
}

describe('an upstream with workers', () => {
  test('lets requests wait while all its workers are busy, which is no latency of the proxy', () => {
    const { counts, goodput, latency, upstreamWait } = simulate();
    expect(counts.successes).toBeGreaterThan(500);
    expect(goodput).toBeCloseTo(1, 1);
    expect(latency).toEqual({ p50: 0, p99: 0 });
    expect(upstreamWait.p50).toBe(0);
    expect(upstreamWait.p99).toBeGreaterThan(50);
    expect(upstreamWait.p99).toBeLessThan(400);
  });

  test('works on requests that the proxy has given up, and loses its capacity to them', () => {
    const policy = { perTryTimeout: '1s', timeout: '1s', retry: { attempts: 1 } };
    const { counts, goodput, series } = simulate({ clients: [{ rate: '30/s' }], policy });
    // The queue grows by ten a second: after two seconds each request times out, and is served all the same.
    expect(goodput).toBeLessThan(0.1);
    expect(counts.abandoned).toBeGreaterThan(1500);
    expect(counts.failed).toBe(counts.abandoned);
    expect(series.at(-1)?.limit).toBe(20);
  });

  test('serves more at once after workers were added, at once', () => {
    const upstream = {
      limit: { kind: 'workers', workers: 1 } as const,
      latency: '100ms',
      steps: [{ at: '30s', limit: 4 }],
    };
    // 1 s of work waits for each second until 30 s, and is served in 15 s after it.
    const { counts, upstreamWait } = simulate({
      upstream,
      clients: [{ rate: '20/s' }],
      policy: { timeout: '10m', perTryTimeout: '10m' },
    });
    expect(counts.offered - counts.successes).toBeLessThan(20);
    expect(upstreamWait.p99).toBeGreaterThan(13_000);
    expect(upstreamWait.p99).toBeLessThan(19_000);
  });

  test('has a latency for each class of requests', () => {
    const upstream = {
      limit: { kind: 'workers', workers: 50 } as const,
      latency: '100ms',
      latencies: [{ match: { path: ['/reports/**'] }, latency: '1s' }],
    };
    const clients = [
      { name: 'quick', rate: '10/s', path: '/payments' },
      { name: 'slow', rate: '10/s', path: '/reports/2026' },
    ];
    const { upstreamWait, latency, series } = simulate({ upstream, clients });
    expect([upstreamWait.p99, latency.p99]).toEqual([0, 0]);
    expect(series.at(-1)?.limit).toBeCloseTo(50 / 0.55, 9);
  });
});

describe('the capacity of workers', () => {
  const latency = { kind: 'constant', mean: 100 } as const;

  test('is their number ÷ the mean work, while it is not slowed down', () => {
    const limit = { kind: 'workers', workers: 8, slowdowns: [{ factor: 2, from: 1000 }] } as const;
    const capacity = upstreamCapacity({ limit, latency });
    expect([capacity(0, 8), capacity(1000, 8), capacity(1000, 16)]).toEqual([80, 40, 80]);
  });

  test('is that of the pool behind them where that is less', () => {
    const pool = { connections: 2, latency: { kind: 'exponential', mean: 100 } } as const;
    const capacity = upstreamCapacity({ limit: { kind: 'workers', workers: 1, pool }, latency });
    expect([capacity(0, 1), capacity(0, 3), capacity(0, 8)]).toEqual([5, 15, 20]);
  });

  test('weighs the latency of each class by what clients want to send', () => {
    const latencies = [{ method: ['POST'], latency: { kind: 'constant', mean: 300 } as const }];
    const spec = { limit: { kind: 'workers', workers: 10 } as const, latency, latencies };
    const reads = { ...TEN_CLIENTS, rate: 3 };
    const writes = { ...TEN_CLIENTS, rate: 1, method: 'POST' };
    expect(upstreamCapacity(spec, [reads, writes])(0, 10)).toBeCloseTo(10 / 0.15, 9);
  });
});
