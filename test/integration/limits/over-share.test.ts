import { describe, expect, test } from 'vitest';
import { parseMembers } from '../../../src/core/hints/structured-fields.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import type { Received } from '../../support/clients/send.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const decisions = (decision: string) => `tidegate_ratelimit_decisions_total{upstream="api",decision="${decision}"}`;

async function start(rateLimit: string, queue: string, more = '') {
  const upstream = await startHttpUpstream((_n, response) => response.end('served'));
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", rateLimit: {${rateLimit}}, queue: {${queue}}}}
clients: {key: ["header:x-api-key"], ${more}}
`);
  const ask = (key: string, headers: string[] = []) => send(gate.url, '/', { headers: ['X-Api-Key', key, ...headers] });
  return { upstream, gate, ask };
}

describe('a client that exceeds its share', () => {
  test('gets the time to retry in every form, and is served when it returns then', async () => {
    const { upstream, gate, ask } = await start('initialRate: 2/s', 'maxWait: 0');
    const both = await Promise.all([ask('a'), ask('a')]);
    const [served, refused] = both.toSorted((a, b) => a.status - b.status) as [Received, Received];
    expect([served.status, refused.status]).toEqual([200, 429]);
    expect(refused.header('content-type')).toBe('application/problem+json');
    expect(refused.header('retry-after')).toBe('1');
    expect(refused.header('proxy-status')).toBe('tidegate; error=http_request_denied; details="over_share"');
    expect(refused.header('ratelimit')).toBe('"tidegate";r=0;t=1');
    expect(refused.header('cache-control')).toBe('no-store');
    expect(refused.header('tidegate-attempts')).toBe('0');
    const { type, title, detail, ...rest } = refused.json();
    const policies = { 'violated-policies': ['tidegate'] };
    expect(rest).toMatchObject({ status: 429, reason: 'over_share', retryAfter: 1, ...policies });
    expect(type).toBe('https://iana.org/assignments/http-problem-types#quota-exceeded');
    expect(refused.header('ratelimit-policy')).toBeUndefined();
    expect(`${String(title)}: ${String(detail)}`).toMatch(/^Too many requests: .*share/);
    expect(upstream.hits).toHaveLength(1);
    expect(await gate.metric(decisions('refused'))).toBe(1);
    const refusals = 'tidegate_requests_total{route="/",method="GET",code="429",outcome="refused"}';
    expect(await gate.metric(refusals)).toBe(1);

    await pause(1000 * Number(refused.header('retry-after')));
    expect((await ask('a')).status).toBe(200);
  });

  test('gets the fixed rate of its class with the time, as structured fields', async () => {
    const { ask } = await start(
      'initialRate: 2/s',
      'maxWait: 0',
      'classes: {batch: {match: {key: ["a"]}, maxRate: 30/m}}',
    );
    const both = await Promise.all([ask('a'), ask('a')]);
    const refused = both.find(({ status }) => status === 429);
    const [limit] = parseMembers(refused?.header('ratelimit') ?? '') ?? [];
    expect([limit?.value, limit?.parameters.get('r')]).toEqual(['tidegate', 0]);
    expect(refused?.header('ratelimit-policy')).toBe('"class:batch";q=1;w=2');
    const other = await Promise.all([ask('b'), ask('b'), ask('b')]);
    const unclassed = other.find(({ status }) => status === 429);
    expect([unclassed?.status, unclassed?.header('ratelimit-policy')]).toEqual([429, undefined]);
  });

  test('is served at its given time, for each of many requests rejected at once', async () => {
    const { ask } = await start('initialRate: 10/s', 'maxWait: 100ms');
    // The last of them returns to a queue of half a second: five times maxWait, and half of its reservation's lifetime.
    const keys = Array.from({ length: 8 }, (_, i) => `client-${i}`);
    const comeBack = async (key: string): Promise<Received> => {
      const answer = await ask(key);
      if (answer.status !== 429) return answer;
      await pause(1000 * Number(answer.header('retry-after')));
      return ask(key);
    };
    const statuses = (await Promise.all(keys.map(comeBack))).map(({ status }) => status);
    expect(statuses).toEqual(keys.map(() => 200));
  });

  test('waits briefly instead of being rejected', async () => {
    const { upstream, gate, ask } = await start('initialRate: 10/s', 'maxWait: 5s');
    const since = performance.now();
    const answers = await Promise.all(Array.from({ length: 5 }, () => ask('a')));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(upstream.hits[4]!.at - since).toBeGreaterThanOrEqual(390); // the pacer catches up by at most 10 ms
    expect(await gate.metric(decisions('queued'))).toBe(4);
    expect(await gate.metric('tidegate_queue_wait_seconds_count{upstream="api"}')).toBe(4);
  });

  test('waits no longer than its own deadline', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", timeout: 300ms, rateLimit: {initialRate: 1/m, minRate: 1/m}, queue: {maxWait: 2m}}}
`);
    await send(gate.url, '/');
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(429);
    expect(answer.took).toBeLessThan(30_000); // its turn is in a minute
    expect(upstream.hits).toHaveLength(1);
  });
});

test('keeps its connection after a rejection, which has no body for HEAD', async () => {
  const { gate, ask } = await start('initialRate: 0.1/s', 'maxWait: 0');
  await ask('a');
  const client = await openRaw(gate.url);
  client.write('HEAD / HTTP/1.1\r\nHost: x\r\nX-Api-Key: a\r\n\r\n');
  const head = await client.until('\r\n\r\n');
  client.write('GET / HTTP/1.1\r\nHost: x\r\nX-Api-Key: a\r\n\r\n');
  const both = await client.until('}');
  expect(head).toMatch(/^HTTP\/1\.1 429 /);
  expect(both.slice(head.length)).toMatch(/^HTTP\/1\.1 429 [^]*\{.*\}$/);
});

test('bounds the queue by its depth', async () => {
  const { gate, ask } = await start('initialRate: 0.5/s', 'maxWait: 10s, maxDepth: 1');
  await ask('a');
  const waiting = ask('a');
  await eventually(
    () => gate.view().limits[0]?.queued,
    (queued) => queued === 1,
  );
  const refused = await ask('b');
  expect(refused.status).toBe(503);
  expect(refused.json()).toMatchObject({ reason: 'queue_full' });
  expect(await gate.metric('tidegate_bound_used_ratio{bound="queue"}')).toBe(1);
  expect(await gate.metric('tidegate_bound_reached_total{bound="queue"}')).toBe(1);
  expect(Number(refused.header('retry-after'))).toBeGreaterThanOrEqual(1);
  expect((await waiting).status).toBe(200);
});

test('stops sending to an upstream that accepts nothing, and tests it with a single probe', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, queue: {maxWait: 100ms}}}`,
  );
  const down = ['X-Practice-Script', '503; retry-after=3'];
  for (let i = 0; i < 8; i += 1) {
    const answer = await send(gate.url, '/', { headers: down });
    expect(answer.header('proxy-status')).toBeUndefined();
  }
  expect(gate.view().limits[0]?.state).toBe('blocked');
  const refused = await send(gate.url, '/');
  expect(refused.status).toBe(503);
  expect(refused.json()).toMatchObject({ reason: 'blocked' });
  expect(refused.header('proxy-status')).toContain('destination_unavailable');
  expect(Number(refused.header('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(await gate.metric('tidegate_ratelimit_state{upstream="api",state="blocked"}')).toBe(1);
  expect(await gate.metric('tidegate_ratelimit_cuts_total{upstream="api",cause="errors"}')).toBe(1);
  await eventually(
    () => send(gate.url, '/'),
    ({ status }) => status === 200,
  );
  expect(gate.view().limits[0]?.state).not.toBe('blocked');
});

test('gives each client its own rate under a limit of its own', async () => {
  const { ask, gate } = await start('initialRate: 0.1/s, scope: client', 'maxWait: 0');
  expect((await ask('a')).status).toBe(200);
  expect((await ask('a')).status).toBe(429);
  expect((await ask('b')).status).toBe(200);
  expect(gate.view().limits.map(({ scope }) => scope)).toEqual(['client', 'client']);
});

test('shares the rate by weight', async () => {
  const { upstream, gate, ask } = await start(
    'initialRate: 50/s, maxRate: 50/s',
    'maxWait: 20s',
    'classes: {checkout: {match: {header: {x-priority: high}}, weight: 4}}',
  );
  const flood = (key: string, headers: string[]) => Array.from({ length: 60 }, () => ask(key, headers));
  const answers = Promise.all([...flood('plain', []), ...flood('checkout', ['X-Priority', 'high'])]);
  await eventually(
    () => upstream.hits.length + (gate.view().limits[0]?.queued ?? 0),
    (come) => come === 120,
  );
  const from = upstream.hits.length;
  expect((await answers).every(({ status }) => status === 200)).toBe(true);
  // Both clients have more requests waiting meanwhile.
  const keys = upstream.hits.slice(from, from + 40).map(({ headers }) => headerOf(headers, 'x-api-key'));
  const early = keys.filter((key) => key === 'checkout').length;
  expect(early).toBeGreaterThanOrEqual(28);
  expect(early).toBeLessThanOrEqual(36);
});
