import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { type Prometheus, startPrometheus } from '../../support/programs/prometheus.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const docker = (path: string) => fileURLToPath(new URL(`../../../docker/${path}`, import.meta.url));
const dashboard = z
  .object({
    panels: z.array(
      z.object({
        id: z.int(),
        title: z.string(),
        gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }),
        targets: z.array(z.object({ refId: z.string(), expr: z.string() })).default([]),
      }),
    ),
    templating: z.object({
      list: z.tuple(
        [z.object({ name: z.literal('datasource'), type: z.literal('datasource'), query: z.literal('prometheus') })],
        z.object({ name: z.string(), type: z.literal('query'), query: z.object({ query: z.string() }) }),
      ),
    }),
    annotations: z.object({ list: z.array(z.object({ expr: z.string() })) }),
  })
  .parse(JSON.parse(readFileSync(docker('grafana/dashboards/tidegate.json'), 'utf8')));

let prometheus: Prometheus;
beforeAll(async () => {
  prometheus = await startPrometheus(['tidegate', 'deliveries'], [docker('prometheus/tidegate.rules.yml')]);
});
afterAll(() => prometheus.close());

/** Two upstreams, one with a hidden limit and occasional failures, one that reports its limit; and greedy clients. */
async function startWorld(): Promise<void> {
  const redis = await startRedis();
  const hidden = await startUpstream({
    limit: { kind: 'token-bucket', rate: 60, burst: 5 },
    latency: { kind: 'lognormal', mean: 20, sigma: 0.5 },
    errors: [{ probability: 0.05, status: 503 }],
    hints: 'retry-after',
  });
  const told = await startUpstream({ limit: { kind: 'fixed-window', limit: 600, window: 60_000 }, hints: 'ratelimit' });
  const gate = await startTidegate(`
upstreams:
  hidden: {url: "${hidden.url}"}
  told: {url: "${told.url}"}
routes: [{path: /, upstream: hidden}, {path: "/told.", upstream: told}]
clients: {key: [header:x-api-key], names: {shop: [shop-*]}}
state: {store: redis, url: "${redis.url}", timeout: 240ms}
`);
  prometheus.watch('tidegate', gate.adminUrl);
  const request = () => ({ method: 'GET', path: '/told.' }) as const;
  const traffic = startTraffic({
    target: gate.url,
    clients: [
      { name: 'shop-1', rate: 60 },
      { name: 'stranger', rate: 30 },
      { name: 'watcher', rate: 3, request },
    ],
  });
  onTestFinished(async () => {
    await traffic.stop(0);
  });
}

/** Deliveries to a receiver that acknowledges every other one. */
async function startDeliveries(): Promise<void> {
  const shop = await startHttpUpstream((n, response) => void response.writeHead(n % 2 === 0 ? 200 : 500).end());
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-dashboard-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const gate = await startTidegate(`
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: normal}
upstreams: {shop: {url: "${shop.url}"}}
routes: [{path: /hooks, upstream: shop, deliver: {schedule: {delays: [1h]}}}]
`);
  prometheus.watch('deliveries', gate.adminUrl);
  const end = new AbortController();
  const sending = (async () => {
    while (!end.signal.aborted) {
      await send(gate.url, '/hooks', { method: 'POST', body: '{}' });
      await pause(100);
    }
  })();
  onTestFinished(async () => {
    end.abort();
    await sending;
  });
}

/** What there is at least of each variable: two jobs, three upstreams and three routes. */
const VALUES: Readonly<Record<string, number>> = { job: 2, instance: 2, upstream: 3, route: 3 };

/**
 * Grafana's substitution for variables with all values chosen: it escapes them for a regular expression.
 * Waits for all values: Prometheus indexes the series of a scrape one after another, so
 * one metric can be there before the next.
 */
async function fillIn(): Promise<(expression: string) => string> {
  const [, ...queries] = dashboard.templating.list;
  const filled = await Promise.all(
    queries.map(async ({ name, query: { query } }) => {
      const [, metric = '', label = ''] = /^label_values\((\w+)(?:\{.*\})?, (\w+)\)$/.exec(query) ?? [];
      const values = await prometheus.eventually(
        () => prometheus.labelValues(metric, label),
        ({ length }) => length >= (VALUES[label] ?? 1),
      );
      const escaped = values.map((value) => value.replaceAll(/[\\^$*+?.()|[\]{}/]/g, String.raw`\\$&`));
      return [name, `(${escaped.join('|')})`] as const;
    }),
  );
  // Four scrapes.
  const variables = new Map<string, string>([['__rate_interval', '4s'], ...filled]);
  return (expression) =>
    expression.replaceAll(/\$(\w+)/g, (variable, name: string) => variables.get(name) ?? `unknown ${variable}`);
}

test('has data for each panel, and rules that can be evaluated', async () => {
  await Promise.all([startWorld(), startDeliveries()]);
  const fill = await fillIn();
  let empty = dashboard.panels.flatMap(({ title, targets }) =>
    targets.map(({ refId, expr }) => ({ what: `${title} ${refId}`, expression: fill(expr) })),
  );
  expect(empty.length).toBeGreaterThan(50);
  const until = performance.now() + 40_000;
  while (empty.length > 0 && performance.now() < until) {
    await pause(500);
    const drawn = await Promise.all(empty.map(({ expression }) => prometheus.draw(expression)));
    empty = empty.filter((_, i) => drawn[i]?.some(Number.isFinite) !== true);
  }
  expect(empty).toEqual([]);

  for (const { expr } of dashboard.annotations.list) await prometheus.draw(fill(expr));
  const rules = await prometheus.eventually(
    () => prometheus.rules(),
    (all) => all.every(({ health }) => health !== 'unknown'),
  );
  expect(rules.length).toBeGreaterThan(10);
  expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
});

test('selects the data source, the job and the instances by variables alone', () => {
  const text = readFileSync(docker('grafana/dashboards/tidegate.json'), 'utf8');
  const uids = Array.from(text.matchAll(/"type": "prometheus",\s*"uid": "([^"]*)"/g), ([, uid]) => uid);
  expect(uids.length).toBeGreaterThan(50);
  expect(uids.filter((uid) => !/^\$\{datasource\}$/.test(uid ?? ''))).toEqual([]);
  for (const { title, targets } of dashboard.panels) {
    for (const { expr } of targets) {
      const selectors = expr.match(/\b(?:tidegate|process|nodejs)_\w+(?:\{[^}]*\})?/g) ?? [];
      expect(selectors.length, title).toBeGreaterThan(0);
      for (const selector of selectors) expect(selector, title).toContain('{job=~"$job", instance=~"$instance"');
    }
  }
});

test('gives no two panels the same id or place', () => {
  const ids = dashboard.panels.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(Math.max(...dashboard.panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
});
