import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

async function startNamed(name: string) {
  return startHttpUpstream((_n, response, { target }) => response.end(`${name} ${target}`));
}

test('prefers the longest prefix, then a host, then methods', async () => {
  const [a, b] = [await startNamed('a'), await startNamed('b')];
  const gate = await startTidegate(`
upstreams: {a: {url: "${a.url}"}, b: {url: "${b.url}"}}
routes:
  - {path: /, upstream: a}
  - {path: /v1, upstream: b}
  - {path: /v1/special, upstream: a}
  - {path: /hosted, upstream: a}
  - {path: /hosted, host: pay.example, upstream: b}
  - {path: /mixed, upstream: a}
  - {path: /mixed, methods: [POST, PUT], upstream: b}
`);
  const ask = async (target: string, sent: Parameters<typeof send>[2] = {}) =>
    (await send(gate.url, target, sent)).body.toString();
  expect(await ask('/x')).toBe('a /x');
  expect(await ask('/v1')).toBe('b /v1');
  expect(await ask('/v1?q=1')).toBe('b /v1?q=1');
  expect(await ask('/v1/x')).toBe('b /v1/x');
  expect(await ask('/v10')).toBe('a /v10');
  expect(await ask('/v1/special/y')).toBe('a /v1/special/y');
  expect(await ask('/hosted')).toBe('a /hosted');
  expect(await ask('/hosted', { headers: ['Host', 'PAY.example:8080'] })).toBe('b /hosted');
  expect(await ask('/mixed')).toBe('a /mixed');
  expect(await ask('/mixed', { method: 'POST' })).toBe('b /mixed');
});

test('matches a host in any valid spelling, and rejects an invalid one', async () => {
  const [open, closed] = [await startNamed('open'), await startNamed('closed')];
  const gate = await startTidegate(`
upstreams: {open: {url: "${open.url}", preserveHost: true}, closed: {url: "${closed.url}", preserveHost: true}}
routes: [{path: /, upstream: open}, {path: /, host: admin.example, upstream: closed}]
`);
  const ask = async (host: string) => send(gate.url, '/', { headers: ['Host', host] });
  for (const host of ['admin.example', 'ADMIN.example:80', 'admin.example:', 'admin.example.', 'admin.example.:8443']) {
    expect((await ask(host)).body.toString(), host).toBe('closed /');
  }
  expect((await ask('admin.example.org')).body.toString()).toBe('open /');
  for (const host of ['%61dmin.example', 'admin%2eexample', 'caf%C3%A9']) {
    expect((await ask(host)).status, host).toBe(400);
  }
});

test('answers 404 without a route, and sends nothing', async () => {
  const a = await startNamed('a');
  const gate = await startTidegate(`
upstreams: {a: {url: "${a.url}"}}
routes: [{path: /v1, methods: [GET], upstream: a}]
`);
  for (const answer of [await send(gate.url, '/'), await send(gate.url, '/v1', { method: 'POST', body: 'x' })]) {
    expect(answer.status).toBe(404);
    expect(answer.header('content-type')).toBe('application/problem+json');
    expect(answer.json()).toMatchObject({ status: 404, reason: 'no_route' });
    expect(answer.header('tidegate-request-id')).toBeDefined();
  }
  expect(a.hits).toHaveLength(0);
});

test('replaces a prefix, and keeps the rest byte for byte', async () => {
  const a = await startNamed('a');
  const gate = await startTidegate(`
upstreams: {a: {url: "${a.url}"}}
routes:
  - {path: /api, rewritePrefix: /v2/api, upstream: a}
  - {path: /strip, rewritePrefix: /, upstream: a}
  - {path: /slash/, rewritePrefix: /s, upstream: a}
  - {path: /both/, rewritePrefix: /v1/, upstream: a}
`);
  const ask = async (target: string) => (await send(gate.url, target)).body.toString();
  expect(await ask('/both//users')).toBe('a /v1//users');
  expect(await ask('/both/')).toBe('a /v1/');
  expect(await ask('/both/%2F/x//?a//b')).toBe('a /v1/%2F/x//?a//b');
  expect(await ask('/slash//users')).toBe('a /s//users');
  expect(await ask('/api//x')).toBe('a /v2/api//x');
  expect(await ask('/strip//x')).toMatch(/^\{.*would start with two slashes/);
  expect(await ask('/api')).toBe('a /v2/api');
  expect(await ask('/api/x%2Fy?b=%20&a')).toBe('a /v2/api/x%2Fy?b=%20&a');
  expect(await ask('/api?q')).toBe('a /v2/api?q');
  expect(await ask('/strip')).toBe('a /');
  expect(await ask('/strip/x')).toBe('a /x');
  expect(await ask('/strip?q')).toBe('a /?q');
  expect(await ask('/slash/x')).toBe('a /s/x');
});

test('applies a route’s own timeouts and retries', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", timeout: 60s, perTryTimeout: 40s, retry: {attempts: 3, backOff: {strategy: fixed, baseInterval: 1ms}}}}
routes:
  - {path: /, upstream: api}
  - {path: /once, upstream: api, retry: {attempts: 1}}
  - {path: /five, upstream: api, retry: {attempts: 5, retryOn: ["500"]}}
  - {path: /quick, upstream: api, perTryTimeout: 300ms, retry: {attempts: 2}}
  - {path: /hurry, upstream: api, timeout: 300ms}
`);
  const attempts = async (target: string, script: string) => {
    const id = `${target}-${script}`;
    const answer = await send(gate.url, target, { headers: ['X-Practice-Id', id, 'X-Practice-Script', script] });
    return { status: answer.status, attempts: upstream.attempts(id), took: answer.took };
  };
  expect(await attempts('/', '500')).toMatchObject({ status: 500, attempts: 3 });
  expect(await attempts('/once', '500')).toMatchObject({ status: 500, attempts: 1 });
  expect(await attempts('/five', '500')).toMatchObject({ status: 500, attempts: 5 });
  expect(await attempts('/five', '501')).toMatchObject({ status: 501, attempts: 1 });
  expect(await attempts('/quick', 'hang')).toMatchObject({ status: 504, attempts: 2 });
  const hurried = await attempts('/hurry', 'hang');
  expect(hurried).toMatchObject({ status: 504, attempts: 1 });
  expect(hurried.took).toBeLessThan(20_000); // the upstream's timeouts are longer
});

test('keeps limits, budgets and connections per upstream', async () => {
  const [a, b] = [await startUpstream(), await startUpstream()];
  const gate = await startTidegate(`
upstreams:
  a: {url: "${a.url}", retry: {attempts: 1}}
  b: {url: "${b.url}", preserveHost: true}
routes: [{path: /, upstream: a}, {path: /b, upstream: b}]
`);
  for (let i = 0; i < 8; i += 1) await send(gate.url, '/', { headers: ['X-Practice-Script', '503; retry-after=5'] });
  expect((await send(gate.url, '/')).status).toBe(503);
  expect((await send(gate.url, '/b', { headers: ['Host', 'mine.example'] })).status).toBe(200);
  const states = Object.fromEntries(gate.view().limits.map(({ upstream, state }) => [upstream, state]));
  expect(states).toEqual({ a: 'blocked', b: 'open' });
});

test('resolves the upstream’s name, and sends it as Host', async () => {
  const a = await startHttpUpstream((_n, response) => response.end());
  const { port } = new URL(a.url);
  const gate = await startTidegate(`upstreams: {a: {url: "http://localhost:${port}"}}`);
  expect((await send(gate.url, '/')).status).toBe(200);
  expect(headerOf(a.hits[0]!.headers, 'host')).toBe(`localhost:${port}`);
});
