/** Checks: an ingress asks whether a request may pass, sends it itself, and may report the response. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openRaw } from '../../support/clients/raw-socket.ts';
import type { Received } from '../../support/clients/send.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

const TOKEN = 'correct-horse-battery';
const NOBODY = 'http://127.0.0.1:9'; // a check sends nothing upstream
const TRUSTED = 'clients: {trustedProxies: [127.0.0.0/8], key: ["header:x-api-key", ip]}\n';

function start(upstream = '', more = TRUSTED, check = `check: {token: ${TOKEN}}\n`): Promise<Tidegate> {
  return startTidegate(`upstreams: {api: {url: "${NOBODY}"${upstream}}}\n${more}${check}`);
}

/** One a second, and no queue. */
const ONE = ', rateLimit: {initialRate: 1/s, maxRate: 1/s}, queue: {maxWait: 0}';

function report(
  gate: { readonly url: string },
  body: unknown,
  headers = ['Authorization', `Bearer ${TOKEN}`],
): Promise<Received> {
  return send(gate.url, '/report', {
    method: 'POST',
    headers: [...headers, 'Content-Type', 'application/json'],
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

async function refuseSecond(gate: Tidegate, target: string, headers: readonly string[] = []): Promise<Received> {
  expect((await send(gate.url, target, { headers })).status).toBe(200);
  return send(gate.url, target, { headers });
}

test('holds only the credential whose quota was reported as spent', async () => {
  const gate = await start();
  const check = (headers: readonly string[]) => send(gate.url, '/check', { headers });
  const token = ['X-Api-Key', 'b', 'Authorization', 'Bearer b'];
  const anonymous = ['X-Api-Key', 'a'];
  const permit = (await check(anonymous)).header('tidegate-permit');
  const headers = { 'X-RateLimit-Limit': '60', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '250' };
  expect((await report(gate, { permit, status: 403, headers })).status).toBe(204);
  for (let i = 0; i < 3; i += 1) expect((await check(token)).status).toBe(200);
  const again = await check(anonymous);
  expect([again.status, Number(again.header('retry-after'))]).toEqual([429, expect.closeTo(250, -1)]);
});

test('answers an admitted check with 200, no body and the client’s name', async () => {
  const gate = await start();
  const answer = await send(gate.url, '/check', { headers: ['X-Forwarded-Uri', '/v1/charges?a=b', 'X-Api-Key', 'a'] });
  expect(answer.status).toBe(200);
  expect(answer.body).toHaveLength(0);
  expect(answer.header('tidegate-upstream')).toBe('api');
  expect(answer.header('tidegate-client')).toMatch(/^[0-9a-f]{16}$/);
  expect(answer.header('tidegate-permit')).toMatch(/^[\w-]+$/);
  await eventually(gate.requests, (lines) => lines.length === 1);
  const [line] = gate.requests();
  expect(line).toMatchObject({
    method: 'GET',
    path: '/v1/charges',
    status: 200,
    outcome: 'checked',
    attempts: 0,
    route: '/',
  });
  const series = 'tidegate_requests_total{route="/",method="GET",code="200",outcome="checked"}';
  expect(await gate.metric(series)).toBe(1);
  expect(await gate.metric('tidegate_ratelimit_decisions_total{upstream="api",decision="passed"}')).toBe(1);
  const explanation = gate.explanations?.find(answer.header('tidegate-request-id') ?? '');
  expect(explanation?.verdict).toBe('allowed to pass: the proxy that asked sends it');
});

test('answers a rejected check with 429, Retry-After and a reason', async () => {
  const gate = await start(ONE);
  const refused = await refuseSecond(gate, '/check');
  expect(refused.status).toBe(429);
  const after = refused.header('retry-after');
  expect(Number(after)).toBeGreaterThanOrEqual(1);
  expect(refused.header('ratelimit')).toBe(`"tidegate";r=0;t=${after}`);
  expect(refused.header('content-type')).toBe('application/problem+json');
  expect(refused.json()).toMatchObject({ status: 429, reason: 'over_share', retryAfter: Number(after) });
  expect(refused.header('tidegate-permit')).toBeUndefined();
});

test('answers 403 with the real status in the nginx dialect, and never a 5xx in the Envoy dialect', async () => {
  const nginx = await start(ONE);
  const refused = await refuseSecond(nginx, '/check?dialect=nginx', ['X-Original-Uri', '/v1']);
  expect(refused.status).toBe(403);
  expect(refused.header('tidegate-status')).toBe('429');
  expect(refused.header('tidegate-retry-after')).toBe(refused.header('retry-after'));
  expect((await send(nginx.url, '/check?dialect=nginx')).header('tidegate-status')).toBe('400');

  const envoy = await start();
  for (let i = 0; i < 4; i += 1) {
    const permit = (await send(envoy.url, '/check/v1/charges', { headers: ['Tidegate-Dialect', 'envoy'] })).header(
      'tidegate-permit',
    );
    await report(envoy, { permit, status: 429 });
  }
  // On a busy machine, the limit may be restoring its rate already.
  await eventually(envoy.view, ({ limits }) => limits[0] !== undefined && limits[0].state !== 'open');
  await report(
    envoy,
    Array.from({ length: 12 }, () => ({ upstream: 'api', status: 503 })),
  );
  await eventually(envoy.view, ({ limits }) => limits[0]?.state === 'blocked');
  const blocked = await send(envoy.url, '/check/v1/charges?wait=x', {
    headers: ['Tidegate-Dialect', 'envoy', 'Tidegate-Wait', '0'],
  });
  expect([blocked.status, blocked.json()['reason']]).toEqual([429, 'blocked']);
});

test.each([
  [
    'Traefik and Caddy',
    '/check',
    ['X-Forwarded-Method', 'PUT', 'X-Forwarded-Uri', '/v1?a=1', 'X-Forwarded-Host', 'a.example'],
    'PUT /v1',
  ],
  ['nginx', '/check?dialect=nginx', ['X-Original-Method', 'PATCH', 'X-Original-Uri', '/v2'], 'PATCH /v2'],
  [
    'ingress-nginx',
    '/check?dialect=nginx',
    ['X-Original-Method', 'POST', 'X-Original-Url', 'https://a.example/v3?x'],
    'POST /v3',
  ],
  ['Envoy', '/check/v4?dialect=mine', [], 'GET /v4'],
  ['no headers', '/check', [], 'GET /'],
  // A client can forge what its ingress forwards: each dialect trusts only headers that its own ingress writes.
  ['a forging nginx client', '/check?dialect=nginx', ['X-Original-Uri', '/v5', 'X-Forwarded-Uri', '/free'], 'GET /v5'],
  [
    'an nginx client that forges its host',
    '/check?dialect=nginx',
    ['X-Original-Uri', '/v5', 'X-Original-Host', 'nowhere.example', 'X-Forwarded-Host', 'nowhere.example'],
    'GET /v5',
  ],
  ['a forging Caddy client', '/check', ['X-Original-Uri', '/free', 'X-Forwarded-Uri', '/v6'], 'GET /v6'],
  ['a forging Envoy client', '/check/v7', ['X-Forwarded-Uri', '/free', 'X-Original-Uri', '/free'], 'GET /v7'],
])('finds the request to check, from %s', async (_, target, headers, expected) => {
  const gate = await start();
  expect((await send(gate.url, target, { headers })).status).toBe(200);
  const [line] = await eventually(gate.requests, (lines) => lines.length === 1);
  expect(`${String(line?.['method'])} ${String(line?.['path'])}`).toBe(expected);
});

test('takes route, host and client address from the request being checked', async () => {
  const gate = await startTidegate(`
upstreams: {slow: {url: "${NOBODY}", rateLimit: {initialRate: 1/s, maxRate: 1/s}, queue: {maxWait: 0}}, fast: {url: "${NOBODY}"}}
routes: [{path: /v1, upstream: slow, host: a.example, methods: [POST]}, {path: /v2, upstream: fast, check: never}, {path: /v3, upstream: fast, check: only}]
clients: {trustedProxies: [127.0.0.1]}
check: {}
`);
  const ask = (uri: string, host = 'a.example', method = 'POST', from = '192.0.2.1') =>
    send(gate.url, '/check', {
      headers: [
        'X-Forwarded-Uri',
        uri,
        'X-Forwarded-Host',
        host,
        'X-Forwarded-Method',
        method,
        'X-Forwarded-For',
        from,
      ],
    });
  const first = await ask('/v1/x');
  expect(first.header('tidegate-upstream')).toBe('slow');
  expect((await ask('/v1/x', 'a.example', 'POST', '192.0.2.2')).status).toBe(429);
  for (const unrouted of [ask('/v1/x', 'b.example'), ask('/v1/x', 'a.example', 'GET'), ask('/v2'), ask('/elsewhere')]) {
    const { status, header } = await unrouted;
    expect([status, header('tidegate-unrouted')]).toEqual([200, 'true']);
  }
  const other = await ask('/v3', 'a.example', 'GET', '192.0.2.2');
  expect(other.header('tidegate-upstream')).toBe('fast');
  expect(other.header('tidegate-client')).not.toBe(first.header('tidegate-client'));
  expect((await send(gate.url, '/v3')).status).toBe(404); // it only answers checks
});

test('ignores headers that ingress-nginx does not write, so that a client cannot choose its route', async () => {
  const gate = await startTidegate(`
upstreams: {slow: {url: "${NOBODY}", rateLimit: {initialRate: 1/s, maxRate: 1/s}, queue: {maxWait: 0}}}
routes: [{path: /v1, upstream: slow, host: a.example}]
clients: {trustedProxies: [127.0.0.1]}
check: {}
`);
  const ask = async (...headers: string[]): Promise<number> => {
    const answer = await send(gate.url, '/check?dialect=nginx', { headers });
    return Number(answer.header('tidegate-status') ?? answer.status);
  };
  const written = ['Host', 'a.example', 'X-Original-Uri', '/v1'];
  expect(await ask(...written)).toBe(200);
  expect(await ask(...written, 'X-Original-Host', 'nowhere.example')).toBe(429);
  const byIngress = ['X-Original-Url', 'http://a.example/v1'];
  expect(await ask(...byIngress, 'X-Original-Host', 'nowhere.example')).toBe(429);
  expect(await ask(...byIngress, 'X-Original-Uri', '/elsewhere')).toBe(400);
});

test.each([
  ['/v1/%63harges', 429],
  ['/v1/charges/%7Eme?a=%63', 429],
  ['/v1%2fcharges', 400],
  ['/v1/charges%2Fx', 400],
  ['/v1//charges', 400],
  ['/v1/charges;x', 400],
  ['/v1;x/charges', 400],
  ['/v1/charges%3bx=1', 400],
  ['/V1/Charges', 400],
  // The same route in any reading.
  ['/v1/charges/a%2Fb;c//D', 429],
  ['/elsewhere/a%2Fb;c//D', 200],
  ['/v10/charges', 200],
])('allows no alternative spelling of a path to bypass its route: %s', async (uri, expected) => {
  const gate = await startTidegate(`
upstreams: {slow: {url: "${NOBODY}", rateLimit: {initialRate: 1/s, maxRate: 1/s}, queue: {maxWait: 0}}}
routes: [{path: /v1/charges, upstream: slow}]
clients: {trustedProxies: [127.0.0.1]}
check: {}
`);
  const ask = (target: string) => send(gate.url, '/check', { headers: ['X-Forwarded-Uri', target] });
  expect((await ask('/v1/charges')).status).toBe(200);
  expect((await ask(uri)).status).toBe(expected);
  expect((await send(gate.url, `/check${uri}`)).status).toBe(expected);
});

test('rejects a request without a route where the configuration says so', async () => {
  const gate = await startTidegate(`
upstreams: {api: {url: "${NOBODY}"}}
routes: [{path: /v1, upstream: api}]
clients: {trustedProxies: [127.0.0.1]}
check: {unrouted: refuse}
`);
  const answer = await send(gate.url, '/check/elsewhere');
  expect([answer.status, answer.json()['reason']]).toEqual([404, 'no_route']);
  const nginx = await send(gate.url, '/check?dialect=nginx', { headers: ['X-Original-Uri', '/elsewhere'] });
  expect([nginx.status, nginx.header('tidegate-status')]).toEqual([403, '404']);
});

test('ignores headers that the Caddy dialect does not write', async () => {
  const gate = await start();
  const answer = await send(gate.url, '/check', { headers: ['X-Original-Uri', '/v1'] });
  expect([answer.status, answer.json()['detail']]).toEqual([400, expect.stringContaining('?dialect=nginx')]);
});

test('rejects a check from an untrusted sender, and names the sender only in the log', async () => {
  const gate = await start('', 'clients: {trustedProxies: [192.0.2.1]}\n');
  const refused = await send(gate.url, '/check');
  expect([refused.status, refused.json()['reason']]).toEqual([403, 'not_trusted']);
  expect(refused.body.toString()).toContain('clients.trustedProxies');
  expect(refused.body.toString()).not.toContain('127.0.0.1');
  const [line] = await eventually(gate.requests, (lines) => lines.length === 1);
  expect(line).toMatchObject({ reason: 'not_trusted', cause: 'from 127.0.0.1' });
  expect((await send(gate.url, '/check?dialect=nginx')).header('tidegate-status')).toBe('403');
});

test('rejects check parameters in a query that the ingress forwards from its client', async () => {
  const gate = await start();
  const ask = (query: string) => send(gate.url, `/check?${query}`, { headers: ['X-Forwarded-Uri', `/v1?${query}`] });
  expect((await ask('a=b')).status).toBe(200);
  for (const query of ['dialect=envoy', 'wait=0', 'a=b&dialect=nginx']) {
    const answer = await ask(query);
    expect([answer.status, answer.json()['reason']]).toEqual([403, 'bad_check']);
  }
  // Headers set no parameters at this path.
  const headers = ['X-Forwarded-Uri', '/v1', 'Tidegate-Dialect', 'nobody'];
  expect((await send(gate.url, '/check', { headers })).status).toBe(200);
});

test.each([
  ['/check?dialect=ngnix', /Did you mean nginx\?/],
  ['/check?dialekt=nginx', /Unknown parameter "dialekt"\. Did you mean dialect\?/],
  ['/check?wait=soon', /a duration such as/],
])('answers %s with the correction', async (target, detail) => {
  const gate = await start();
  const answer = await send(gate.url, target);
  expect([answer.status, answer.json()['reason']]).toEqual([400, 'bad_check']);
  expect(answer.json()['detail']).toMatch(detail);
});

test.each([['/../x'], ['//x'], ['x'], ['/%2e%2e/x']])(
  'answers 400 for a URI that would not be forwarded: %s',
  async (uri) => {
    const gate = await start();
    const answer = await send(gate.url, '/check', { headers: ['X-Forwarded-Uri', uri] });
    expect(answer.status).toBe(400);
  },
);

test('queues a check for at most its allowed wait', async () => {
  const gate = await start(', rateLimit: {initialRate: 4/s, maxRate: 4/s}, queue: {maxWait: 5s}');
  const since = performance.now();
  expect((await send(gate.url, '/check')).status).toBe(200);
  expect((await send(gate.url, '/check?wait=0')).status).toBe(429);
  expect((await send(gate.url, '/check')).status).toBe(200);
  expect(performance.now() - since).toBeGreaterThanOrEqual(250);
});

test.each([
  ['without a wait', '/check?wait=0'],
  ['with the default wait', '/check'],
])('admits clients that return when they were told to, %s', async (_, target) => {
  const gate = await start(', rateLimit: {initialRate: 4/s}');
  const end = performance.now() + 8000;
  const counts = { passed: 0, returned: 0, refusedAgain: 0 };
  const client = async (i: number): Promise<void> => {
    let wasTold = false;
    while (performance.now() < end) {
      const { status, header } = await send(gate.url, target, {
        headers: ['X-Api-Key', `${i}`, 'X-Forwarded-For', `10.0.0.${i}`],
      });
      if (wasTold) counts.returned += 1;
      if (status === 200) counts.passed += 1;
      else if (wasTold) counts.refusedAgain += 1;
      wasTold = status !== 200;
      if (wasTold) await sleep(1000 * Number(header('retry-after')));
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_each, i) => client(i)));
  expect(counts.returned).toBeGreaterThan(10);
  expect(counts.refusedAgain).toBe(0);
  expect(counts.passed).toBeGreaterThan(24);
});

test('admits all checks in observe mode, and reports what it would have rejected', async () => {
  const gate = await start(ONE, `${TRUSTED}mode: observe\n`);
  const second = await refuseSecond(gate, '/check');
  expect(second.status).toBe(200);
  expect(second.header('tidegate-would-have')).toBe('refused over_share');
});

test('admits a queued check during shutdown, as its ingress stays up', async () => {
  // Neither its turn nor the end of the drain comes during this test.
  const slow = ', rateLimit: {initialRate: 0.1/s, maxRate: 0.1/s}, queue: {maxWait: 500s}, timeout: 600s';
  const gate = await start(slow, `${TRUSTED}drain: {delay: 0, timeout: 600s}\n`);
  expect((await send(gate.url, '/check')).status).toBe(200);
  const waiting = [send(gate.url, '/check'), send(gate.url, '/check'), send(gate.url, '/check')];
  await eventually(gate.view, ({ limits }) => limits[0]?.queued === 3);
  await gate.drain();
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200]);
});

test('discards a body that an ingress sends with a check, and keeps the connection', async () => {
  const gate = await start();
  const sent = { method: 'POST', body: 'x'.repeat(200_000) };
  expect((await send(gate.url, '/check', sent)).status).toBe(200);
  expect((await send(gate.url, '/check/v1', { method: 'HEAD' })).status).toBe(200);
});

test('forwards the check paths to the upstream where no check section is configured', async () => {
  const gate = await start('', TRUSTED, '');
  expect((await send(gate.url, '/check')).status).toBe(502);
});

test('cuts the rate on a reported 429, holds the client with a Retry-After, and counts the report', async () => {
  const gate = await start();
  const ask = (key: string) => send(gate.url, '/check', { headers: ['X-Api-Key', key] });
  const [a] = await Promise.all(['a', 'b'].map(ask));
  const reported = await report(gate, { permit: a?.header('tidegate-permit'), status: 429, retryAfter: 30 });
  expect(reported.status).toBe(204);
  expect(gate.view().limits[0]?.state).toBe('backoff');
  const held = await ask('a');
  expect([held.status, held.json()['reason'], held.header('retry-after')]).toEqual([429, 'held', '30']);
  expect((await ask('b')).status).toBe(200);
  expect(await gate.metric('tidegate_upstream_reports_total{upstream="api",code="429"}')).toBe(1);
  expect(await gate.metric('tidegate_upstream_throttled_total{upstream="api",reason="unspecified"}')).toBe(1);
});

test('blocks only the reported path, or the keys of the reported address', async () => {
  const gate = await start(', queue: {maxWait: 10ms}');
  const ask = (key: string, address: string, path: string) =>
    send(gate.url, '/check', {
      headers: ['X-Api-Key', key, 'X-Forwarded-For', address, 'X-Forwarded-Method', 'GET', 'X-Forwarded-Uri', path],
    });
  for (let i = 0; i < 9; i += 1) {
    const passed = await ask(`k${i}`, `203.0.113.${i}`, '/slow');
    await report(gate, { permit: passed.header('tidegate-permit'), status: 503, retryAfter: 20 });
  }
  expect((await ask('other', '198.51.100.1', '/slow')).status).toBe(429);
  for (const path of ['/fine', '/', '/slower']) expect((await ask('other', '198.51.100.1', path)).status).toBe(200);
  expect(await gate.metric('tidegate_ratelimit_blocks{upstream="api",cause="errors",part="path"}')).toBe(1);
});

test('accepts a report that names upstream and client instead of a permit', async () => {
  const gate = await start(', rateLimit: {scope: client}');
  const ask = () => send(gate.url, '/check', { headers: ['X-Api-Key', 'a'] });
  const client = (await ask()).header('tidegate-client');
  // Longer than the maximum wait before a retry: the report must be accepted all the same.
  expect((await report(gate, { upstream: 'api', client, status: 429, retryAfter: 31_536_000 })).status).toBe(204);
  expect((await ask()).status).toBe(429);
  expect((await send(gate.url, '/check', { headers: ['X-Api-Key', 'b'] })).status).toBe(200);
});

const RULES = `throttle: {codeField: error.code, answers: [
  {status: [403, 429], header: {Retry-After: "*"}, is: throttled}, {status: 403, code: "*secondary rate*", is: throttled, wait: 30s},
  {status: [409, 429], code: lock_timeout, is: lock}, {status: 418, is: throttled, limit: ""}]}`;

test.each<[string, object, 'open' | 'backoff']>([
  ['a 403 with a time to retry', { status: 403, retryAfter: 20 }, 'backoff'],
  ['a 403 with a Retry-After header', { status: 403, headers: { 'retry-after': '20' } }, 'backoff'],
  ['a 403 with a configured code', { status: 403, code: 'a secondary rate limit' }, 'backoff'],
  ['a 403 with another code', { status: 403, code: 'forbidden' }, 'open'],
  ['a status configured as a rejection', { status: 418 }, 'backoff'],
  ['a 429 with the code of a lock', { status: 429, code: 'lock_timeout' }, 'open'],
  ['a 429 with the reason of a lock', { status: 429, reason: 'resource-specific' }, 'open'],
  ['a 429 with another code', { status: 429, code: 'rate_limit' }, 'backoff'],
])('classifies a report as it would the response: %s', async (_, fields, state) => {
  const gate = await start(`, ${RULES}`);
  const permit = (await send(gate.url, '/check')).header('tidegate-permit');
  expect((await report(gate, { permit, ...fields })).status).toBe(204);
  expect(gate.view().limits[0]?.state).toBe(state);
});

test('holds the client of a reported GitHub 403 with Retry-After', async () => {
  const gate = await startTidegate(
    `upstreams: {api: {provider: github, url: "${NOBODY}"}}\n${TRUSTED}check: {token: ${TOKEN}}\n`,
  );
  const permit = (await send(gate.url, '/check')).header('tidegate-permit');
  expect((await report(gate, { permit, status: 403, retryAfter: 20 })).status).toBe(204);
  const held = await send(gate.url, '/check?wait=0');
  expect([held.status, held.header('retry-after')]).toEqual([429, '20']);
});

test('accepts a list with reports that match no route, and learns nothing from them', async () => {
  const gate = await startTidegate(`
upstreams: {api: {url: "${NOBODY}"}}
routes: [{path: /v1, upstream: api}]
${TRUSTED}check: {token: ${TOKEN}, unrouted: pass}
`);
  const [routed, unrouted] = await Promise.all(
    ['/check/v1', '/check/assets'].map(async (path) => (await send(gate.url, path)).header('tidegate-permit')),
  );
  const list = [
    { permit: unrouted, status: 429, retryAfter: 20 },
    { permit: routed, status: 200 },
  ];
  expect((await report(gate, list)).status).toBe(204);
  expect(gate.view().limits[0]?.state).toBe('open');
  expect((await report(gate, { permit: routed, status: 429 })).status).toBe(204);
  expect(gate.view().limits[0]?.state).toBe('backoff');
});

test('rejects a report that contradicts itself, or names a limit that does not apply to its request', async () => {
  const gate = await startTidegate(`
upstreams:
  api: {url: "${NOBODY}", limits: [{name: endpoint, match: {path: /v1/*}}, {name: search, match: {path: /v1/search}}]}
  other: {url: "${NOBODY}"}
routes: [{path: /, upstream: api}, {path: /other, upstream: other}]
${TRUSTED}check: {token: ${TOKEN}}
`);
  const answer = await send(gate.url, '/check/v1/charges');
  const permit = answer.header('tidegate-permit');
  const client = answer.header('tidegate-client');
  for (const [fields, detail] of [
    [{ permit, limit: 'endpoin' }, /^limit: .* Did you mean endpoint\?/],
    [{ permit, limit: 'search' }, /^limit: it did not apply to this request/],
    [{ upstream: 'api', limit: 'endpoint' }, /^limit: .*permit/],
    [{ permit, upstream: 'other' }, /^upstream: /],
    [{ permit, client: '0123456789abcdef' }, /^client: /],
    [{ upstream: 'api', client: 'sk_live_abc' }, /^client: /],
    [{ permit, reason: 'two words' }, /^reason: /],
  ] as const) {
    const refused = await report(gate, { ...fields, status: 429 });
    expect([refused.status, refused.json()['detail']]).toEqual([400, expect.stringMatching(detail)]);
  }
  expect(gate.view().limits.map(({ state }) => state)).toEqual(gate.view().limits.map(() => 'open'));
  for (const limit of ['endpoint', '']) {
    expect((await report(gate, { permit, upstream: 'api', client, limit, status: 200 })).status).toBe(204);
  }
});

test.each<[string, unknown, number, RegExp]>([
  ['no JSON', 'status=429', 400, /Expected JSON/],
  ['no status', { upstream: 'api' }, 400, /^status: /],
  [
    'an invalid status in a list',
    [
      { upstream: 'api', status: 200 },
      { upstream: 'api', status: 4290 },
    ],
    400,
    /^1\.status: /,
  ],
  ['an unknown key', { upstream: 'api', status: 429, retry: 1 }, 400, /"retry"/],
  ['an unknown upstream', { upstream: 'apis', status: 429 }, 400, /Did you mean api\?/],
  ['an invalid permit', { permit: 'abc', status: 429 }, 400, /^permit: /],
  ['neither permit nor upstream', { status: 429 }, 400, /the permit of the request, or its upstream/],
  ['an oversized body', 'x'.repeat(100_000), 413, /at most/],
])('rejects a report with %s, and learns nothing from it', async (_, body, status, detail) => {
  const gate = await start();
  const answer = await report(gate, body);
  expect(answer.status).toBe(status);
  expect(answer.json()['detail']).toMatch(detail);
  expect(gate.view().limits[0]?.state).toBe('open');
});

// `curl -X POST` sends no length: Node's stream of such a request never ends.
test.each([
  ['', /^HTTP\/1\.1 400 /],
  ['Expect: 100-continue\r\n', /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /],
])('answers a report without a body at once, and keeps the connection: %j', async (expects, pattern) => {
  const gate = await start();
  const client = await openRaw(gate.url);
  client.write(`POST /report HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n${expects}\r\n`);
  expect(await client.until('Expected JSON')).toMatch(pattern);
  client.write('GET /check HTTP/1.1\r\nHost: x\r\n\r\n');
  await client.until('HTTP/1.1 200 OK');
});

test('accepts reports only with the token, and none where no token is configured', async () => {
  const gate = await start();
  const body = { upstream: 'api', status: 429 };
  for (const headers of [[], ['Authorization', 'Bearer wrong-horse-battery']]) {
    const answer = await report(gate, body, headers);
    expect([answer.status, answer.header('www-authenticate')]).toEqual([401, 'Bearer realm="tidegate"']);
  }
  expect((await send(gate.url, '/report')).status).toBe(405);
  const closed = await start('', TRUSTED, 'check: {}\n');
  expect((await report(closed, body)).status).toBe(403);
  expect([gate, closed].map(({ view }) => view().limits[0]?.state)).toEqual(['open', 'open']);
});

test('applies a token or a path changed by a reload at once', async () => {
  const gate = await start();
  const yaml = `upstreams: {api: {url: "${NOBODY}"}}\n${TRUSTED}check: {path: /ask, token: another-horse-battery}\n`;
  expect(await gate.rewrite(yaml)).toMatchObject({ kind: 'applied' });
  expect((await report(gate, { upstream: 'api', status: 200 })).status).toBe(401);
  expect((await send(gate.url, '/ask')).status).toBe(200);
});

test('applies a report to the limit that all workers share', async () => {
  const gate = await startWorkers(
    `workers: 2\nupstreams: {api: {url: "${NOBODY}"}}\n${TRUSTED}check: {token: ${TOKEN}}\n`,
  );
  const permits = await Promise.all(Array.from({ length: 20 }, () => send(gate.url, '/check')));
  const body = permits
    .slice(0, 5)
    .map((answer) => ({ permit: answer.header('tidegate-permit'), status: 429, retryAfter: 30 }));
  expect((await report(gate, body)).status).toBe(204);
  const state = 'tidegate_ratelimit_state{upstream="api",state="open"}';
  await eventually(
    () => gate.sum(state),
    (open) => open === 0,
  );
  // Held at every worker.
  await eventually(
    async () => Promise.all(Array.from({ length: 10 }, async () => (await send(gate.url, '/check?wait=0')).status)),
    (statuses) => statuses.every((status) => status === 429),
  );
});
