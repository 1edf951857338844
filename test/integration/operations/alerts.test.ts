import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

const at = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const RULES = at('docker/prometheus/tidegate.rules.yml');
const TESTS = at('docker/prometheus/tests');

const { groups } = z
  .object({
    groups: z.array(
      z.object({
        rules: z.array(
          z.strictObject({
            alert: z.string().regex(/^Tidegate[A-Z]/),
            expr: z.string(),
            for: z.string().optional(),
            labels: z.strictObject({ severity: z.enum(['info', 'warning', 'critical']) }),
            annotations: z.strictObject({ summary: z.string(), description: z.string(), runbook_url: z.url() }),
          }),
        ),
      }),
    ),
  })
  .parse(parse(readFileSync(RULES, 'utf8')));
const alerts = groups.flatMap(({ rules }) => rules);

function promtool(...args: readonly string[]): { status: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
  return { status, said: stdout + stderr };
}

test('has rules and a configuration that Prometheus can load', () => {
  expect(promtool('check', 'rules', RULES)).toMatchObject({ status: 0 });
  const config = promtool('check', 'config', at('docker/prometheus/prometheus.yml'));
  expect(config).toMatchObject({ status: 0 });
  expect(config.said).toContain('tidegate.rules.yml');
});

test('fires each alert on its condition, and not just below it', () => {
  const files = readdirSync(TESTS).map((name) => `${TESTS}/${name}`);
  expect(promtool('test', 'rules', ...files)).toMatchObject({ status: 0 });
  const expected = files.map((file) => readFileSync(file, 'utf8')).join('');
  for (const { alert } of alerts) expect(expected).toMatch(new RegExp(`\\{alertname="${alert}"[,}]`));
});

test('links each alert to its own runbook', () => {
  const headings = Array.from(readFileSync(at('docs/runbooks.md'), 'utf8').matchAll(/^## (.+)$/gm), ([, heading]) =>
    (heading ?? '').toLowerCase().replaceAll(' ', '-'),
  );
  const links = alerts.map(({ annotations }) => annotations.runbook_url);
  const page = 'https://github.com/tidegate/tidegate/blob/main/docs/runbooks.md';
  expect(links.toSorted()).toEqual(headings.map((anchor) => `${page}#${anchor}`).toSorted());
});

test('uses only metrics that exist', async () => {
  const redis = await startRedis();
  const upstreams = 'upstreams: {api: {url: "http://127.0.0.1:1"}}';
  // Two topologies, because some metrics exist only with several workers, and others only with Redis or SQLite.
  const { adminUrl } = await startTidegate(`${upstreams}\nstate: {store: redis, url: "${redis.url}"}`);
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const state = `state: {store: sqlite, file: ${join(folder, 'state.db')}}`;
  const workers = await startWorkers(`${upstreams}\nworkers: 2\n${state}`);
  const expositions = await Promise.all(
    [adminUrl, workers.adminUrl].map(async (url) => (await fetch(`${url}/metrics`)).text()),
  );
  const exported = new Set(Array.from(expositions.join('').matchAll(/^# TYPE (\w+)/gm), ([, name]) => name));
  const used = alerts.flatMap(({ expr }) => expr.match(/\b(?:tidegate|nodejs)_\w+/g) ?? []);
  expect(used.length).toBeGreaterThanOrEqual(alerts.length);
  expect(used.filter((name) => !exported.has(name.replace(/_bucket$/, '')))).toEqual([]);
});
