/** Services that queue, in the benchmark of goodput over sockets: its figures, goals and options. */
import { describe, expect, test } from 'vitest';
import { haproxyConfig, tidegateConfig } from '../../bench/goodput/configs.ts';
import type { Counted, Measurement } from '../../bench/goodput/measurement.ts';
import { parseOptions } from '../../bench/goodput/options.ts';
import type { ServiceGoal } from '../../bench/goodput/services/service-goals.ts';
import { formatFigure, isGoalMet } from '../../bench/goodput/services/service-goals.ts';
import { SERVICE_KINDS } from '../../bench/goodput/services/service-kinds.ts';
import { findServiceFaults, makeServiceRow } from '../../bench/goodput/services/service-row.ts';
import { missedGoals, serviceGoalTable, serviceTable } from '../../bench/goodput/services/service-tables.ts';

const NOTHING: Counted = { successes: 0, refused: 0, failed: 0, sends: 0, accepted: 0, wasted: 0 };

function measured(counted: Partial<Counted>, service: NonNullable<Measurement['service']>): Measurement {
  return {
    offered: 200,
    counted: { ...NOTHING, sends: 100, accepted: 100, ...counted },
    cold: NOTHING,
    statuses: { 0: 10, 200: 90, 429: 100 },
    latency: { p50: 200, p99: 900 },
    service,
    lateness: 2,
  };
}

const WAIT = { p50: 60, p99: 150.2 };
const ROW = makeServiceRow(
  'tidegate-latency',
  measured({ successes: 90, refused: 100, failed: 10 }, { worked: 96, wait: WAIT }),
  100,
);

describe('the figures of a row', () => {
  test('divide responses in time by the capacity, and work without such a response by all work', () => {
    expect(ROW).toMatchObject({ goodput: 0.9, abandoned: 0.0625, refused: 0.5, failed: 0.05, waitP50: 60 });
    expect(findServiceFaults(ROW, 100)).toEqual([]);
  });

  test('are not negative if the response to work before the counted time arrives in it', () => {
    const row = makeServiceRow('bare', measured({ successes: 97 }, { worked: 96, wait: WAIT }), 100);
    expect(row.abandoned).toBe(0);
  });

  test('are missing if the service worked on nothing, which is a fault', () => {
    const row = makeServiceRow('bare', measured({}, { worked: 0, wait: { p50: 0, p99: 0 } }), 100);
    expect([row.abandoned, row.waitP50, row.waitP99]).toEqual([Number.NaN, Number.NaN, Number.NaN]);
    expect(findServiceFaults(row, 100)).toEqual(['nothing succeeded', 'the service worked on nothing']);
  });
});

describe('a goal', () => {
  const goodput: ServiceGoal = { figure: 'goodput', atLeast: 0.9 };
  const wait: ServiceGoal = { figure: 'waitP99', atMost: 150 };
  const abandoned: ServiceGoal = { figure: 'abandoned', atMost: 0.02 };

  test.each([
    [goodput, 0.9, true, '0.900'],
    [goodput, 0.899_99, false, '0.899'],
    [wait, 150, true, '150 ms'],
    [wait, 150.01, false, '151 ms'],
    [abandoned, 0.02, true, '2.0 %'],
    [abandoned, 0.020_01, false, '2.1 %'],
    [abandoned, Number.NaN, false, '–'],
  ])('%o is judged by the exact figure %d, which is never rounded towards it', (goal, figure, isMet, shown) => {
    expect(isGoalMet(goal, { ...ROW, [goal.figure]: figure })).toBe(isMet);
    expect(formatFigure(goal.figure, figure)).toBe(shown);
  });

  test('is one of both configurations that learn from latency, and of no other proxy', () => {
    const [kind] = SERVICE_KINDS;
    if (kind === undefined) throw new Error('there are services');
    const others = (['tidegate-timeout', 'tidegate', 'gradient2'] as const).map((contender) => ({ ...ROW, contender }));
    const results = [{ kind, rows: [ROW, ...others], faults: [] }];
    expect(serviceGoalTable(results).rows.map(([, proxy, , shown, met]) => [proxy, shown, met])).toEqual([
      ['tidegate, learnFromLatency', '0.900', 'yes'],
      ['tidegate, learnFromLatency', '151 ms', 'no'],
      ['tidegate, learnFromLatency, timeout 950 ms', '0.900', 'yes'],
      ['tidegate, learnFromLatency, timeout 950 ms', '151 ms', 'no'],
    ]);
    expect(missedGoals(results)).toEqual([
      'workers-8, tidegate-latency: 151 ms misses p99 of the wait at the service ≤ 150 ms',
      'workers-8, tidegate-timeout: 151 ms misses p99 of the wait at the service ≤ 150 ms',
    ]);
  });
});

test('names the maxconn of HAProxy, and a proxy that is not installed', () => {
  const results = SERVICE_KINDS.map((kind) => ({
    kind,
    rows: [{ ...ROW, contender: 'haproxy-maxconn' as const }],
    faults: [],
  }));
  const { head, rows } = serviceTable(results, ['caddy']);
  expect(rows.map(([, proxy]) => proxy)).toEqual(['haproxy, maxconn 16', 'caddy', 'haproxy, maxconn 4', 'caddy']);
  expect(rows[1]?.[2]).toBe('not installed');
  expect(rows.every((row) => row.length === head.length)).toBe(true);
});

describe('the configuration', () => {
  test('of HAProxy limits requests at the server, and their time in its queue, only if asked', () => {
    expect(haproxyConfig(1, 'localhost:2', '503')).not.toMatch(/timeout queue|server .* maxconn/);
    const text = haproxyConfig(1, 'localhost:2', '503', { maxconn: 16, timeout: 500 });
    expect(text).toContain('\n  timeout queue 500ms\n  option abortonclose\n');
    expect(text).toContain('\n  server upstream localhost:2 maxconn 16\n');
  });

  test('of Tidegate has its default timeout unless one is given', () => {
    expect(tidegateConfig('http://a', 1)).not.toContain('timeout');
    const settings = { learnFromLatency: true, timeout: 950 };
    expect(tidegateConfig('http://a', 1, settings)).toContain(
      '    timeout: 950ms\n    rateLimit: {learnFromLatency: true}\n',
    );
  });
});

describe('the options', () => {
  const names = (args: readonly string[]) => {
    const options = parseOptions(args);
    if (options === 'help') throw new Error('help was not asked for');
    return {
      kinds: options.kinds.map(({ name }) => name),
      services: options.services.map(({ name }) => name),
      contenders: options.contenders,
      serviceContenders: options.serviceContenders,
    };
  };

  test('choose services alone, hidden limits alone, or both', () => {
    expect(names(['--kinds', 'workers-8'])).toMatchObject({ kinds: [], services: ['workers-8'] });
    expect(names(['--kinds', 'gcra-50'])).toMatchObject({ kinds: ['gcra-50'], services: [] });
    expect(names(['--kinds', 'workers-2,gcra-50'])).toMatchObject({ kinds: ['gcra-50'], services: ['workers-2'] });
    expect(names(['--smoke'])).toMatchObject({
      kinds: ['token-bucket-100', 'concurrency-20'],
      services: ['workers-8', 'workers-2'],
    });
  });

  test('choose proxies where they run', () => {
    expect(names(['--proxies', 'nginx,gradient2'])).toMatchObject({
      contenders: ['nginx'],
      serviceContenders: ['gradient2', 'nginx'],
    });
  });

  test('reject an unknown name', () => {
    expect(() => parseOptions(['--kinds', 'workers-3'])).toThrow('--kinds workers-3: expected token-bucket-100,');
    expect(() => parseOptions(['--proxies', 'squid'])).toThrow('--proxies squid: expected tidegate, nginx,');
  });
});
