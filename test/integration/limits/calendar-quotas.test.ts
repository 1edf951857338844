/** Configured quotas, over sockets. A rolling day has no midnight during a test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Received, send } from '../../support/clients/send.ts';
import { startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { type HttpUpstream, refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const DAY_SECONDS = 86_400;
/** A rolling period is counted in parts of a 120th. */
const PART_SECONDS = DAY_SECONDS / 120;

function startUpstream(): Promise<HttpUpstream> {
  return startHttpUpstream((_n, response) => response.end('ok'));
}

function configure(url: string, quota: string, rest = ''): string {
  return `upstreams: {api: {url: "${url}", quotas: [{per: rolling 24h, ${quota}}]}}\n${rest}`;
}

async function sendMany(gate: Tidegate, count: number, headers: readonly string[] = []): Promise<Received[]> {
  const responses: Received[] = [];
  for (let i = 0; i < count; i += 1) responses.push(await send(gate.url, '/v1/items', { headers }));
  return responses;
}

const statuses = (responses: readonly Received[]): number[] => responses.map(({ status }) => status);
const remaining = (gate: Tidegate): Promise<number> =>
  gate.metric('tidegate_quota_remaining{upstream="api",quota="rolling-24h"}');

test('sends no more than the quota, and refuses the rest with the time of the reset', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(configure(upstream.url, 'limit: 3'));
  const responses = await sendMany(gate, 5);
  expect(statuses(responses)).toEqual([200, 200, 200, 429, 429]);
  expect(upstream.hits).toHaveLength(3);

  const [refused] = responses.slice(-1);
  const retryAfter = Number(refused?.header('retry-after'));
  expect(retryAfter).toBeGreaterThanOrEqual(DAY_SECONDS - 60);
  expect(retryAfter).toBeLessThanOrEqual(DAY_SECONDS + PART_SECONDS + 1);
  expect(refused?.header('ratelimit')).toBe(`"tidegate";r=0;t=${retryAfter}`);
  expect(refused?.header('content-type')).toBe('application/problem+json');
  expect(refused?.header('tidegate-attempts')).toBe('0');
  expect(refused?.json()).toMatchObject({
    type: 'https://tidegate.dev/problems/quota-exceeded',
    title: 'Quota exceeded',
    status: 429,
    reason: 'quota_exceeded',
    retryAfter,
    error: { type: 'rate_limit_error', code: 'quota_exceeded' },
  });

  expect(await gate.metric('tidegate_quota_limit{upstream="api",quota="rolling-24h"}')).toBe(3);
  expect(await remaining(gate)).toBe(0);
  const exhaustedAt = await gate.metric(
    'tidegate_quota_exhausted_at_timestamp_seconds{upstream="api",quota="rolling-24h"}',
  );
  expect(Math.abs(exhaustedAt - Date.now() / 1000)).toBeLessThan(300);
  const status = (await (await fetch(`${gate.adminUrl}/api/status`)).json()) as { upstreams: { quotas: unknown }[] };
  expect(status.upstreams[0]?.quotas).toEqual([
    {
      name: 'rolling-24h',
      limit: 3,
      remaining: 0,
      reserve: 0,
      resetAt: expect.stringMatching(/^20\d\d-/) as unknown,
      exhaustedAt: expect.stringMatching(/^20\d\d-/) as unknown,
    },
  ]);
  expect(gate.requests().at(-1)).toMatchObject({ reason: 'quota_exceeded', status: 429 });
  const id = String(refused?.header('tidegate-request-id'));
  const explanation = await fetch(`${gate.adminUrl}/explain/${id}`, { headers: { accept: 'text/plain' } });
  expect((await explanation.text()).replaceAll(/\s+/g, ' ')).toMatch(
    /refused \(quota_exceeded\): the quota rolling-24h of 3 requests is used up until 20\d\d-/,
  );
});

test('counts each attempt, and not one that could not connect', async () => {
  const upstream = await startHttpUpstream((n, response) => response.writeHead(n <= 2 ? 503 : 200).end());
  const retry = 'retry: {attempts: 3, backOff: {strategy: fixed, baseInterval: 1ms}}';
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", ${retry}, quotas: [{limit: 10, per: rolling 24h}]}}`,
  );
  expect(statuses(await sendMany(gate, 1))).toEqual([200]);
  expect(await remaining(gate)).toBe(7);

  const unreachable = await startTidegate(configure(await refusingUrl(), 'limit: 10'));
  expect(statuses(await sendMany(unreachable, 1))).toEqual([502]);
  expect(await remaining(unreachable)).toBe(10);
});

test('keeps its count over a restart with SQLite', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const upstream = await startUpstream();
  const yaml = configure(upstream.url, 'limit: 5', `state: {store: sqlite, file: ${join(folder, 'state.db')}}`);
  const first = await startTidegate(yaml);
  await sendMany(first, 3);
  await first.close();
  const second = await startTidegate(yaml);
  expect(await remaining(second)).toBe(2);
  expect(statuses(await sendMany(second, 3))).toEqual([200, 200, 429]);
  expect(upstream.hits).toHaveLength(5);
});

test('leaves its reserve to a class with a weight above 1', async () => {
  const upstream = await startUpstream();
  const classes = 'clients: {classes: {web: {match: {header: {X-Class: web}}, weight: 4}}}';
  const gate = await startTidegate(configure(upstream.url, 'limit: 4, reserve: 50%', classes));
  expect(statuses(await sendMany(gate, 3))).toEqual([200, 200, 429]);
  expect(statuses(await sendMany(gate, 3, ['X-Class', 'web']))).toEqual([200, 200, 429]);
});

test('applies another limit at a reload, and keeps the count', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(configure(upstream.url, 'limit: 2'));
  expect(statuses(await sendMany(gate, 3))).toEqual([200, 200, 429]);
  await gate.rewrite(configure(upstream.url, 'limit: 3'));
  expect(statuses(await sendMany(gate, 2))).toEqual([200, 429]);
});

test('refuses nothing in observe mode, and counts', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(configure(upstream.url, 'limit: 2', 'mode: observe'));
  expect(statuses(await sendMany(gate, 4))).toEqual([200, 200, 200, 200]);
  expect(await remaining(gate)).toBe(0);
  expect(gate.requests().map(({ wouldHave }) => wouldHave)).toEqual([
    'passed',
    'passed',
    'refused quota_exceeded',
    'refused quota_exceeded',
  ]);
});

test('is never exceeded by requests that arrive at once', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(configure(upstream.url, 'limit: 20', 'clients: {key: ["header:X-Client"]}'));
  const responses = await Promise.all(
    Array.from({ length: 60 }, (_, i) => send(gate.url, '/', { headers: ['X-Client', String(i % 7)] })),
  );
  expect(statuses(responses).filter((status) => status === 200)).toHaveLength(20);
  expect(upstream.hits).toHaveLength(20);
});
