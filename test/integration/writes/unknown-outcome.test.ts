import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const unknown = (code: number) => `tidegate_requests_total{route="/",method="POST",code="${code}",outcome="unknown"}`;
const fixed = (ms: number) => `backOff: {strategy: fixed, baseInterval: ${ms}ms}`;

describe('a write whose connection broke after it was sent', () => {
  test('is reported as unknown without a key: 504, in header, body and metrics', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.destroy());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const answer = await send(gate.url, '/pay?secret=1', { method: 'POST', body: 'amount=1' });
    expect(answer.status).toBe(504);
    expect(answer.header('tidegate-outcome')).toBe('unknown');
    expect(answer.header('content-type')).toBe('application/problem+json');
    expect(answer.header('proxy-status')).toBe('tidegate; error=http_response_incomplete; details="reset"');
    expect(answer.header('retry-after')).toBeUndefined();
    expect(answer.json()).toMatchObject({ status: 504, outcome: 'unknown', reason: 'reset' });
    expect(upstream.hits).toHaveLength(1);
    expect(await gate.metric(unknown(504))).toBe(1);
    expect(gate.requests()).toMatchObject([{ outcome: 'unknown', level: 'warn', reason: 'reset' }]);
  });

  test('stays unknown with a key, though the limiter would now reject it', async () => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 1) response.destroy();
      else response.writeHead(429, ['Retry-After', '30']).end();
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {${fixed(400)}}}}`);
    const post = send(gate.url, '/', { method: 'POST', headers: ['Idempotency-Key', 'k'], body: 'x' });
    // During its backoff, another request of this client gets a Retry-After of 30 s.
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect((await send(gate.url, '/other')).status).toBe(429);
    const answer = await post;
    expect(answer.status).toBe(504);
    expect(answer.header('tidegate-outcome')).toBe('unknown');
    expect(answer.header('retry-after')).toBeUndefined();
    expect(upstream.hits.filter(({ method }) => method === 'POST')).toHaveLength(1);
    expect(await gate.metric(unknown(504))).toBe(1);
  });

  test.each([
    [429, 'throttled'],
    [503, 'not_processed'],
  ])(
    'stays unknown with a key after a last response of %i, which covers only its own attempt',
    async (status, reason) => {
      const upstream = await startHttpUpstream((n, response) => {
        if (n === 1) response.destroy();
        else response.writeHead(status, ['Retry-After', '200']).end('not processed');
      });
      const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {${fixed(1)}}}}`);
      const answer = await send(gate.url, '/', { method: 'POST', headers: ['Idempotency-Key', 'k'], body: 'x' });
      expect(answer.status).toBe(504);
      expect(answer.header('tidegate-outcome')).toBe('unknown');
      expect(answer.json()).toMatchObject({ outcome: 'unknown', reason });
      expect(upstream.hits).toHaveLength(2);
    },
  );

  test('is resolved by a response that states the outcome', async () => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 1) response.destroy();
      else response.writeHead(402).end('declined');
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {${fixed(1)}}}}`);
    const answer = await send(gate.url, '/', { method: 'POST', headers: ['Idempotency-Key', 'k'], body: 'x' });
    expect(answer.status).toBe(402);
    expect(answer.body.toString()).toBe('declined');
    expect(answer.header('tidegate-outcome')).toBeUndefined();
  });

  test('is a plain 502 for a safe request', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.destroy());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {${fixed(1)}}}}`);
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(502);
    expect(answer.header('tidegate-outcome')).toBeUndefined();
    expect(answer.json()).toMatchObject({ status: 502, reason: 'reset' });
    expect(answer.json()).not.toHaveProperty('outcome');
    expect(upstream.hits).toHaveLength(4);
  });
});

describe('an error that may hide an effect', () => {
  test.each([500, 502, 504])('%i is forwarded, marked as unknown and counted', async (status) => {
    const upstream = await startHttpUpstream((_n, response) =>
      response.writeHead(status, ['X-Theirs', '1']).end('theirs'),
    );
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const answer = await send(gate.url, '/', { method: 'POST', body: 'x' });
    expect(answer.status).toBe(status);
    expect(answer.body.toString()).toBe('theirs');
    expect(answer.header('x-theirs')).toBe('1');
    expect(answer.header('tidegate-outcome')).toBe('unknown');
    expect(upstream.hits).toHaveLength(1);
    expect(await gate.metric(unknown(status))).toBe(1);
  });

  test.each([429, 503, 400, 501])('%i is not marked as unknown', async (status) => {
    const upstream = await startHttpUpstream((_n, response) => response.writeHead(status).end());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const answer = await send(gate.url, '/', { method: 'POST', body: 'x' });
    expect(answer.status).toBe(status);
    expect(answer.header('tidegate-outcome')).toBeUndefined();
  });

  test('forwards the unknown outcome of another Tidegate behind it', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.destroy());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const front = await startTidegate(`upstreams: {api: {url: "${gate.url}"}}`);
    const post = await send(front.url, '/', { method: 'POST', body: 'x' });
    expect(post.status).toBe(504);
    expect(post.header('tidegate-outcome')).toBe('unknown');
    expect(upstream.hits).toHaveLength(1);
  });
});

test('reports a write that timed out as unknown, and charges at most once', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", timeout: 60s, perTryTimeout: 350ms}}`);
  const pay = (id: string, script: string, ...headers: string[]) =>
    send(gate.url, '/charges', {
      method: 'POST',
      headers: ['X-Practice-Id', id, 'X-Intent', id, 'X-Practice-Script', script, ...headers],
      body: 'amount=1',
    });
  const unkeyed = await pay('a', 'hang-after-charge');
  expect(unkeyed.status).toBe(504);
  expect(unkeyed.header('tidegate-outcome')).toBe('unknown');
  const keyed = await pay('b', 'hang-after-charge, 200', 'Idempotency-Key', 'b');
  expect(keyed.status).toBe(200);
  expect(upstream.ledger.charges).toBe(2);
  expect(upstream.ledger.doubleCharges).toBe(0);
});

test('does not report a write without a connection as unknown, as nothing was sent', async () => {
  const held: ServerResponse[] = [];
  const upstream = await startHttpUpstream((_n, response) => void held.push(response));
  const gate = await startTidegate(`
upstreams:
  api:
    url: "${upstream.url}"
    connections: 1
    timeout: 60s
    perTryTimeout: 60s
    queue: {maxWait: 100ms}
    retry: {attempts: 1}
`);
  const pay = () => send(gate.url, '/charges', { method: 'POST', body: 'amount=1' });
  const sent = pay();
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  const second = await pay();
  expect([second.status, second.header('tidegate-outcome')]).toEqual([429, undefined]);
  expect(second.json()).toMatchObject({ reason: 'queue_timeout' });
  held[0]?.destroy();
  const first = await sent;
  expect([first.status, first.header('tidegate-outcome')]).toEqual([504, 'unknown']);
  expect(upstream.hits).toHaveLength(1);
});

test('retries a key that is still in progress, where locks are retried', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams:
  api:
    url: "${upstream.url}"
    perTryTimeout: 150ms
    retry: {attempts: 10, retryOn: [timeout, lock], ${fixed(120)}}
`);
  const answer = await send(gate.url, '/charges', {
    method: 'POST',
    headers: ['Idempotency-Key', 'k', 'X-Practice-Id', 'k', 'X-Practice-Script', '200; delay=850, pass'],
    body: 'amount=1',
  });
  expect(answer.status).toBe(200);
  expect(answer.header('idempotent-replayed')).toBe('true');
  expect(upstream.ledger.charges).toBe(1);
  expect(await gate.metric('tidegate_retries_total{upstream="api",reason="lock"}')).toBeGreaterThanOrEqual(1);
});
