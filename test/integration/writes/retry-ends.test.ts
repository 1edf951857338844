import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const ends = (outcome: string) => `tidegate_retry_outcomes_total{upstream="api",outcome="${outcome}"}`;
const fixed = (ms: number) => `backOff: {strategy: fixed, baseInterval: ${ms}ms}`;

test('ends retries after the last attempt, and forwards its response', async () => {
  const upstream = await startHttpUpstream((n, response) => response.writeHead(503).end(`no ${n}`));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 3, ${fixed(1)}}}}`);
  const answer = await send(gate.url, '/');
  expect(answer.status).toBe(503);
  expect(answer.body.toString()).toBe('no 3');
  expect(answer.header('tidegate-attempts')).toBe('3');
  expect(upstream.hits).toHaveLength(3);
  expect(await gate.metric(ends('attempts_exhausted'))).toBe(1);
  for (const attempt of [1, 2, 3]) {
    expect(await gate.metric(`tidegate_upstream_attempts_total{upstream="api",attempt="${attempt}",code="503"}`)).toBe(
      1,
    );
  }
});

test('makes no retry with one attempt in all', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(503).end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`);
  expect((await send(gate.url, '/')).status).toBe(503);
  expect(upstream.hits).toHaveLength(1);
});

test('bounds all retries together by the budget', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(500).end());
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 4, budget: {ratio: 0.2, burst: 5}, ${fixed(1)}}}}
`);
  for (let i = 0; i < 4; i += 1) expect((await send(gate.url, '/')).status).toBe(500);
  expect(upstream.hits).toHaveLength(4 + 5);
  expect(await gate.metric(ends('attempts_exhausted'))).toBe(1);
  expect(await gate.metric(ends('budget_exhausted'))).toBe(3);
  expect(await gate.metric('tidegate_retry_budget_available_ratio{upstream="api"}')).toBe(0);
});

test('refills the budget with successes', async () => {
  let healthy = false;
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(healthy ? 200 : 500).end());
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 2, budget: {ratio: 0.5, burst: 1}, ${fixed(1)}}}}
`);
  const hitsOf = async () => {
    const before = upstream.hits.length;
    await send(gate.url, '/');
    return upstream.hits.length - before;
  };
  expect([await hitsOf(), await hitsOf()]).toEqual([2, 1]);
  healthy = true;
  expect([await hitsOf(), await hitsOf()]).toEqual([1, 1]);
  healthy = false;
  expect([await hitsOf(), await hitsOf()]).toEqual([2, 1]);
});

test('does not start a retry that would exceed the deadline', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(503).end('in hand'));
  // The first wait is 20 ms, the second 40 s.
  const backOff = 'backOff: {strategy: exponential, baseInterval: 20ms, multiplier: 2000, maxInterval: 60s}';
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", timeout: 30s, retry: {${backOff}}}}`);
  const answer = await send(gate.url, '/');
  expect(answer.status).toBe(503);
  expect(answer.body.toString()).toBe('in hand');
  expect(upstream.hits).toHaveLength(2);
  expect(answer.took).toBeLessThan(15_000); // neither until the deadline nor for the second wait
  expect(await gate.metric(ends('deadline'))).toBe(1);
});

test('ends each attempt at its own timeout', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", timeout: 60s, perTryTimeout: 150ms, retry: {attempts: 3, ${fixed(1)}}}}
`);
  const answer = await send(gate.url, '/', { headers: ['X-Practice-Script', 'hang'] });
  expect(answer.status).toBe(504);
  expect(answer.json()).toMatchObject({ reason: 'timeout' });
  expect(answer.header('tidegate-outcome')).toBeUndefined();
  expect(answer.header('tidegate-attempts')).toBe('3');
  expect(answer.took).toBeGreaterThanOrEqual(400);
  expect(answer.took).toBeLessThan(30_000);
  expect(await gate.metric('tidegate_retries_total{upstream="api",reason="timeout"}')).toBe(2);
  expect(await gate.metric(ends('attempts_exhausted'))).toBe(1);
});

test('ends an attempt at the deadline, before its own timeout', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", timeout: 500ms, perTryTimeout: 60s, retry: {${fixed(1)}}}}
`);
  const answer = await send(gate.url, '/', { headers: ['X-Practice-Script', 'hang'] });
  expect(answer.status).toBe(504);
  expect(answer.json()).toMatchObject({ reason: 'timeout' });
  expect(answer.header('tidegate-outcome')).toBeUndefined();
  expect(answer.header('tidegate-attempts')).toBe('1');
  expect(answer.took).toBeGreaterThanOrEqual(490);
  expect(answer.took).toBeLessThan(30_000);
  expect(await gate.metric('tidegate_retries_total{upstream="api",reason="timeout"}')).toBe(0);
});

test('bounds all attempts together by the deadline', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams:
  api:
    url: "${upstream.url}"
    timeout: 700ms
    perTryTimeout: 200ms
    retry: {attempts: 100, budget: {ratio: 1, burst: 100}, ${fixed(1)}}
`);
  const answer = await send(gate.url, '/', { headers: ['X-Practice-Script', 'hang'] });
  expect([answer.status, answer.json()['reason']]).toEqual([504, 'timeout']);
  expect(answer.took).toBeGreaterThanOrEqual(600);
  expect(answer.took).toBeLessThan(10_000); // 100 attempts would take 20 s
});

test('ends retries when the client disconnects', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(503).end());
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", timeout: 60s, retry: {${fixed(40_000)}}}}`,
  );
  const retries = 'tidegate_retries_total{upstream="api",reason="status_5xx"}';
  await sendAndLeave(gate.url, '/', {}, async () => (await gate.metric(retries)) === 1);
  await eventually(
    () => gate.metric(ends('client_gone')),
    (count) => count === 1,
  );
  expect(upstream.hits).toHaveLength(1);
});

test('ends retries after a success', async () => {
  const upstream = await startHttpUpstream((n, response) => response.writeHead(n === 1 ? 500 : 204).end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {${fixed(1)}}}}`);
  expect((await send(gate.url, '/')).status).toBe(204);
  expect(await gate.metric(ends('success'))).toBe(1);
  expect(await gate.metric('tidegate_retry_backoff_seconds_count{upstream="api",source="backoff"}')).toBe(1);
});

test('counts no end of retries for a request that needs none', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  await send(gate.url, '/');
  for (const outcome of ['success', 'attempts_exhausted', 'deadline', 'not_idempotent']) {
    expect(await gate.metric(ends(outcome))).toBe(0);
  }
});
