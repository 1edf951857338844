import { expect, test } from 'vitest';
import { refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

test('writes one line per request with its outcome', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {backOff: {strategy: fixed, baseInterval: 50ms}}}}
`);
  const answer = await send(gate.url, '/charges?limit=3', {
    method: 'POST',
    headers: [
      ...['Idempotency-Key', 'k', 'X-Practice-Id', 'k', 'X-Practice-Script', '503, 200'],
      ...['X-Request-Id', 'order"7\\', 'Traceparent', `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`],
    ],
    body: 'amount=1',
  });
  const [line, ...more] = await eventually(gate.requests, ({ length }) => length > 0);
  expect(more).toEqual([]);
  const { time, client, sleptMs, ms, write, ...rest } = line ?? {};
  expect(rest).toEqual({
    level: 'info',
    msg: 'request',
    id: answer.header('tidegate-request-id'),
    xRequestId: 'order"7\\',
    route: '/',
    upstream: 'api',
    endpoint: new URL(upstream.url).host,
    method: 'POST',
    path: '/charges',
    status: 200,
    outcome: 'recovered',
    attempts: 2,
    queuedMs: 0,
    trace_id: 'a'.repeat(32),
    span_id: 'b'.repeat(16),
    bytesIn: 'amount=1'.length,
    bytesOut: answer.body.length,
  });
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(client).toMatch(/^[0-9a-f]{16}$/);
  expect(write).toMatch(/^[0-9a-f]{16}$/);
  expect(sleptMs).toBeGreaterThanOrEqual(50);
  expect(ms).toBeGreaterThanOrEqual(50);
});

test('counts the bytes of both bodies, however they are sent', async () => {
  const large = Buffer.alloc(200_000, 'x');
  const upstream = await startHttpUpstream((_n, response, { target }) => {
    if (target === '/empty') return void response.writeHead(204).end();
    if (target !== '/pieces') return void response.end(large);
    response.write(large.subarray(0, 1000));
    setTimeout(() => response.end(large.subarray(1000)), 20);
  });
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {replayLimit: 1KiB}}}
`);
  await send(gate.url, '/empty');
  await send(gate.url, '/whole');
  await send(gate.url, '/pieces', { method: 'POST', body: large });
  await send(gate.url, '/whole', { method: 'HEAD' });
  const refused = await send(gate.url, '/..', {});
  const lines = await eventually(gate.requests, ({ length }) => length === 5);
  expect(lines.map(({ bytesIn, bytesOut }) => [bytesIn, bytesOut])).toEqual([
    [0, 0],
    [0, 200_000],
    [200_000, 200_000],
    [0, 0],
    [0, refused.body.length],
  ]);
  expect(lines[4]).not.toHaveProperty('endpoint');
});

test('logs the X-Request-Id of a rejected request, and none that is not usable', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  await send(gate.url, '/..', { headers: ['X-Request-Id', 'order-7'] });
  await send(gate.url, '/', { headers: ['X-Request-Id', 'x'.repeat(129)] });
  const lines = await eventually(gate.requests, ({ length }) => length === 2);
  expect(lines[0]).toMatchObject({ status: 400, xRequestId: 'order-7' });
  expect(lines[1]).toMatchObject({ status: 200 });
  expect(lines[1]).not.toHaveProperty('xRequestId');
});

test('writes no secret into any line or metric, whatever happens', async () => {
  const upstream = await startUpstream();
  const secret = 'S3CR3T';
  const yaml = (url: string) => `
upstreams: {api: {url: "${url}", perTryTimeout: 200ms, retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 1ms}}, idempotency: {header: X-Once}}}
clients: {key: ["header:x-api-key", bearer]}
`;
  const gate = await startTidegate(yaml(upstream.url));
  const dead = await startTidegate(yaml(await refusingUrl()));
  const headers = [
    ...['Authorization', `Bearer ${secret}`, 'Cookie', `session=${secret}`, 'X-Api-Key', secret],
    ...['Idempotency-Key', secret, 'X-Once', secret, 'Proxy-Authorization', `Basic ${secret}`],
    ...['X-Request-Id', `${'x'.repeat(128)}${secret}`], // too long to be logged
    ...['Traceparent', `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01-${secret}`, 'Tracestate', `a=${secret}`],
  ];
  const target = `/pay?token=${secret}`;
  for (const script of ['200; header=Set-Cookie:S3CR3T', '500', 'reset', 'hang', '200; cut=3', '404']) {
    await send(gate.url, target, {
      method: 'POST',
      headers: [...headers, 'X-Practice-Script', script],
      body: secret,
    }).catch(() => undefined);
  }
  const { received } = upstream.stats();
  const isThere = () => upstream.stats().received > received;
  await sendAndLeave(gate.url, target, { headers: [...headers, 'X-Practice-Script', 'hang'] }, isThere);
  await send(dead.url, target, { headers });
  await send(gate.url, `/..${target}`, { headers });
  await eventually(gate.requests, ({ length }) => length === 8);
  await eventually(dead.requests, ({ length }) => length === 1);

  expect(JSON.stringify([gate.log(), dead.log()])).not.toContain(secret);
  expect(await (await fetch(`${gate.adminUrl}/metrics`)).text()).not.toContain(secret);
});

test('logs and counts a request that is rejected before it has a route', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}"}}\nroutes: [{path: /v1, upstream: api}]\n`,
  );
  await send(gate.url, '/v2?x=1', {});
  await send(gate.url, 'http://user:secret@elsewhere.example/', {});
  const lines = await eventually(gate.requests, ({ length }) => length === 2);
  expect(lines).toMatchObject([
    { route: '(none)', path: '/v2', status: 404, outcome: 'refused', reason: 'no_route', attempts: 0 },
    { route: '(none)', path: '(absolute)', status: 400, outcome: 'refused', reason: 'bad_request' },
  ]);
  expect(lines[0]).not.toHaveProperty('upstream');
  expect(await gate.metric('tidegate_requests_total{route="(none)",method="GET",code="404",outcome="refused"}')).toBe(
    1,
  );
  expect(await gate.metric('tidegate_requests_in_flight{route="(none)"}')).toBe(0);
  expect(upstream.stats().received).toBe(0);
});

test('logs the reset of a connection under the name that the system gives it', async () => {
  const upstream = await startHttpUpstream((_n, response) => void response.socket?.resetAndDestroy());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  await send(gate.url, '/charges', { method: 'POST', body: 'amount=1' });
  const lines = await eventually(gate.requests, ({ length }) => length === 1);
  expect(lines).toMatchObject([{ outcome: 'unknown', reason: 'reset', cause: 'ECONNRESET' }]);
});

test('logs with its rate when a limit is found, and at debug the changes that follow from it', async () => {
  const upstream = await startUpstream({ limit: { kind: 'token-bucket', rate: 20, burst: 5 } });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`);
  await Promise.all(Array.from({ length: 20 }, () => send(gate.url, '/')));
  const changes = await eventually(
    async () => {
      await send(gate.url, '/');
      return gate.log().filter(({ msg }) => msg === 'limit changed state');
    },
    (lines) => lines.some(({ to }) => to === 'restoring'),
  );
  expect(changes[0]).toMatchObject({ level: 'info', upstream: 'api', from: 'open', to: 'backoff' });
  const rate = Number(changes[0]?.['rate']);
  expect(rate).toBeGreaterThan(0);
  let logged = rate;
  for (const { level, from, to, rate: now } of changes.slice(1)) {
    if (from === 'blocked' || to === 'blocked') continue;
    const factor = Math.max(Number(now) / logged, logged / Number(now));
    // Both rates are rounded to three digits.
    if (level === 'info') expect(factor).toBeGreaterThan(1.97);
    else expect([level, factor]).toEqual(['debug', expect.toSatisfy((by: number) => by < 2.03)]);
    if (level === 'info') logged = Number(now);
  }
});

test('logs problems as warnings, but not rejections', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`);
  const levelAfter = async (script: string): Promise<unknown> => {
    const before = gate.requests().length;
    await send(gate.url, '/', { headers: ['X-Practice-Script', script] }).catch(() => undefined);
    const lines = await eventually(gate.requests, ({ length }) => length > before);
    expect(lines).toHaveLength(before + 1);
    return lines.at(-1)?.['level'];
  };
  expect(await levelAfter('200')).toBe('info');
  expect(await levelAfter('404')).toBe('info');
  expect(await levelAfter('reset')).toBe('warn');
  expect(await levelAfter('200; cut=5')).toBe('warn');
  expect(await levelAfter('429; retry-after=100')).toBe('info');
  expect(await levelAfter('200')).toBe('info'); // refused: held
});
