import { describe, expect, test } from 'vitest';
import { refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const fast = 'backOff: {strategy: fixed, baseInterval: 5ms}';
const ends = (outcome: string) => `tidegate_retry_outcomes_total{upstream="api",outcome="${outcome}"}`;

describe('a write without an idempotency key reaches the upstream once', () => {
  const cases = [
    { script: '429', status: 429, outcome: undefined },
    { script: '503', status: 503, outcome: undefined },
    { script: '500', status: 500, outcome: 'unknown' },
    { script: '502', status: 502, outcome: 'unknown' },
    { script: '504', status: 504, outcome: 'unknown' },
    { script: 'reset', status: 504, outcome: 'unknown' },
    { script: 'hang', status: 504, outcome: 'unknown' },
  ];
  for (const method of ['POST', 'PATCH']) {
    test.each(cases)(`${method} answered with $script`, async ({ script, status, outcome }) => {
      const upstream = await startUpstream();
      const perTryTimeout = script === 'hang' ? '500ms' : '30s';
      const gate = await startTidegate(
        `upstreams: {api: {url: "${upstream.url}", perTryTimeout: ${perTryTimeout}, retry: {${fast}}}}`,
      );
      const answer = await send(gate.url, '/charges', {
        method,
        headers: ['X-Practice-Id', 'one', 'X-Practice-Script', script],
        body: 'amount=1',
      });
      expect(upstream.attempts('one')).toBe(1);
      expect(answer.status).toBe(status);
      expect(answer.header('tidegate-outcome')).toBe(outcome);
      expect(answer.header('tidegate-attempts')).toBe('1');
      expect(await gate.metric(ends('not_idempotent'))).toBe(1);
    });
  }
});

test('does not retry what the upstream forbids to retry', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {${fast}}}}`);
  const answer = await send(gate.url, '/', {
    headers: ['X-Practice-Id', 'veto', 'X-Practice-Script', '503; header=Stripe-Should-Retry:false'],
  });
  expect(answer.status).toBe(503);
  expect(upstream.attempts('veto')).toBe(1);
  expect(await gate.metric(ends('upstream_veto'))).toBe(1);
});

test.each([400, 401, 403, 404, 409, 412, 422, 451])('treats a %i as a response, not as a failure', async (status) => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {${fast}}}}`);
  const answer = await send(gate.url, '/', {
    headers: ['X-Practice-Id', 'four', 'X-Practice-Script', String(status)],
  });
  expect(answer.status).toBe(status);
  expect(upstream.attempts('four')).toBe(1);
});

test('sends a body once that is too large to keep', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {${fast}, replayLimit: 1KiB}}}`);
  const headers = (id: string) => ['X-Practice-Id', id, 'X-Practice-Script', '503', 'Idempotency-Key', id];
  const large = await send(gate.url, '/', { method: 'PUT', headers: headers('large'), body: Buffer.alloc(1025) });
  expect(large.status).toBe(503);
  expect(upstream.attempts('large')).toBe(1);
  // The length is only a hint: in chunks it is known only as they arrive.
  await send(gate.url, '/', { method: 'PUT', headers: headers('chunks'), body: Buffer.alloc(1025), chunked: true });
  expect(upstream.attempts('chunks')).toBe(1);
  expect(await gate.metric(ends('body_too_large'))).toBe(2);
  await send(gate.url, '/', { method: 'PUT', headers: headers('small'), body: Buffer.alloc(1024) });
  expect(upstream.attempts('small')).toBe(4);
});

test('bounds the memory for bodies kept for retries', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
limits: {replayMemory: 3KiB}
upstreams: {api: {url: "${upstream.url}", retry: {${fast}, replayLimit: 2KiB}}}
`);
  const sent = ['a', 'b'].map((id) =>
    send(gate.url, '/', {
      method: 'PUT',
      headers: ['X-Practice-Id', id, 'X-Practice-Script', '503; delay=100, 200'],
      body: Buffer.alloc(2000),
    }),
  );
  const statuses = (await Promise.all(sent)).map(({ status }) => status);
  expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 503]);
  expect(await gate.metric('tidegate_replay_buffer_bytes')).toBe(0);
});

test('retries a write that was never sent, whatever its method', async () => {
  const gate = await startTidegate(`upstreams: {api: {url: "${await refusingUrl()}", retry: {attempts: 3, ${fast}}}}`);
  const answer = await send(gate.url, '/charges', { method: 'POST', body: 'amount=1' });
  expect(answer.status).toBe(502);
  expect(answer.json()).toMatchObject({ reason: 'connect', status: 502 });
  expect(answer.header('tidegate-outcome')).toBeUndefined();
  expect(answer.header('tidegate-attempts')).toBe('3');
  expect(await gate.metric('tidegate_retries_total{upstream="api",reason="connect"}')).toBe(2);
});

test('streams a large unsent write once a connection is available', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", retry: {backOff: {strategy: fixed, baseInterval: 80ms}}}}`,
  );
  upstream.configure({ outages: [{ from: 0, to: upstream.stats().elapsed + 150, how: 'refuse' }] });
  const body = Buffer.alloc(200_000, 'x');
  const answer = await send(gate.url, '/echo', { method: 'POST', body });
  expect(answer.status).toBe(200);
  expect(answer.json()['body']).toMatchObject({ length: 200_000 });
  expect(Number(answer.header('tidegate-attempts'))).toBeGreaterThan(1);
});

test('retries an unkeyed write after a 429 only, where the upstream rejects before it acts', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", retry: {${fast}, unkeyedWrites: on429}}}`,
  );
  const post = (id: string, script: string) =>
    send(gate.url, '/', { method: 'POST', headers: ['X-Practice-Id', id, 'X-Practice-Script', script], body: 'x' });
  expect((await post('throttled', '429, 200')).status).toBe(200);
  expect(upstream.attempts('throttled')).toBe(2);
  expect((await post('down', '503, 200')).status).toBe(503);
  expect(upstream.attempts('down')).toBe(1);
});

test('does not multiply the attempts of a trusted proxy in front', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(503).end());
  const yaml = (trusted: string) => `
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 3, ${fast}}}}
clients: {trustedProxies: [${trusted}]}
`;
  const trusting = await startTidegate(yaml('127.0.0.1'));
  await send(trusting.url, '/', { headers: ['x-envoy-attempt-count', '2'] });
  expect(upstream.hits).toHaveLength(1);
  await send(trusting.url, '/', { headers: ['x-envoy-attempt-count', '1'] });
  expect(upstream.hits).toHaveLength(4);
  // The largest of several counts applies. An invalid count is ignored.
  await send(trusting.url, '/', { headers: ['x-envoy-attempt-count', '1', 'x-envoy-attempt-count', '2'] });
  expect(upstream.hits).toHaveLength(5);
  await send(trusting.url, '/', { headers: ['x-envoy-attempt-count', 'two'] });
  expect(upstream.hits).toHaveLength(8);
  const untrusting = await startTidegate(yaml(''));
  await send(untrusting.url, '/', { headers: ['x-envoy-attempt-count', '2'] });
  expect(upstream.hits).toHaveLength(11);
});
