/** Operator actions: pin, block, reset, validate, drain; and who may use them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { fetchExplanation, findStep } from '../../support/admin/explanations.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const ADMIN = `admin: {listen: "127.0.0.1:0", token: ${TOKEN}}\nclients: {key: [header:x-key, ip]}\n`;

async function start(limit: Parameters<typeof startUpstream>[0] = {}, settings = '') {
  const upstream = await startUpstream(limit);
  const proxy = await startTidegate(`${ADMIN}upstreams: {till: {url: "${upstream.url}"${settings}}}\n`);
  const api = await openAdminApi(proxy.adminUrl ?? '');
  const ask = (key = 'a') => send(proxy.url, '/charges', { headers: ['x-key', key] });
  const flood = (count: number) => Promise.all(Array.from({ length: count }, (_, i) => ask(`k${i}`)));
  return { upstream, proxy, api, ask, flood };
}

test('sends at a pinned rate even if the upstream would accept more', async () => {
  const { api, flood } = await start({}, ', queue: {maxWait: 3s}');
  const answer = await api.post('/api/upstreams/till/pin?rate=20/s');
  expect(answer.json()).toMatchObject({ pinned: 20, rate: 20, learnedRate: null });
  expect(answer.json()['notes']).toContainEqual(expect.stringContaining('pinned at 20/s'));
  const since = performance.now();
  const answers = await flood(21);
  expect(performance.now() - since).toBeGreaterThan(950);
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 21 }, () => 200));
  expect((await api.post('/api/upstreams/till/unpin')).json()).toMatchObject({ pinned: null, rate: null });
});

test('keeps a pinned rate during rejections, and shows the learned rate beside it', async () => {
  const { api, flood } = await start({ limit: { kind: 'token-bucket', rate: 5, burst: 1 } });
  await api.post('/api/upstreams/till/pin?rate=100/s');
  for (let i = 0; i < 3; i += 1) await flood(30);
  const [till] = (await api.get('/api/status')).json()['upstreams'] as {
    rate: number;
    pinned: number;
    learnedRate: number;
  }[];
  expect(till).toMatchObject({ rate: 100, pinned: 100 });
  expect(till?.learnedRate).toBeLessThan(100);
});

test('pins the rate of each limit where each client has its own', async () => {
  const { api, ask } = await start({}, ', rateLimit: {scope: client}, queue: {maxWait: 3s}');
  await api.post('/api/upstreams/till/pin?rate=10/s');
  const since = performance.now();
  await Promise.all(Array.from({ length: 12 }, (_, i) => ask(i % 2 === 0 ? 'a' : 'b')));
  expect(performance.now() - since).toBeGreaterThan(450);
  expect((await api.get('/api/status')).json()).toMatchObject({
    upstreams: [{ pinned: 10, limits: 2, scope: 'client' }],
  });
});

test('rejects requests during a block, with the time to retry', async () => {
  const { upstream, api, ask, proxy } = await start();
  await ask();
  const { accepted } = upstream.stats();
  expect((await api.post('/api/upstreams/till/block?for=90s')).json()).toMatchObject({
    state: 'blocked',
    blockedBy: 'operator',
    untilWhat: 'blocked until',
  });
  const refused = await ask();
  expect(refused.status).toBe(503);
  expect(refused.json()).toMatchObject({ reason: 'blocked' });
  expect(Number(refused.header('retry-after'))).toBeGreaterThan(80);
  expect(upstream.stats().accepted).toBe(accepted);
  expect((await api.post('/api/upstreams/till/unblock')).json()).toMatchObject({ state: 'open', blockedBy: null });
  expect((await ask()).status).toBe(200);
  // Each was logged once, with its caller.
  const actions = proxy.log().filter(({ msg }) => msg === 'operator action');
  expect(actions).toMatchObject([
    {
      ...{ level: 'info', action: 'block', upstream: 'till', forMs: 90_000, by: '127.0.0.1' },
      before: { state: 'open', rate: null, pinned: null, blockedBy: null, until: null },
      after: { state: 'blocked', pinned: null, blockedBy: 'operator', until: expect.stringMatching(/^20/) as string },
    },
    {
      ...{ action: 'unblock', upstream: 'till' },
      ...{ before: { state: 'blocked', blockedBy: 'operator' }, after: { state: 'open', blockedBy: null } },
    },
  ]);
  const { events } = (await api.get('/api/timeline')).json() as { events: { kind: string }[] };
  expect(events.map(({ kind }) => kind)).toEqual(['unblocked', 'blocked']);
});

test('ends a block when its time is over, and admits the queued requests', async () => {
  const { api, ask } = await start({}, ', queue: {maxWait: 5s}');
  await api.post('/api/upstreams/till/block?for=700ms');
  const since = performance.now();
  expect((await ask()).status).toBe(200);
  expect(performance.now() - since).toBeGreaterThan(400);
});

test('admits queued requests when a block is lifted', async () => {
  const { api, ask } = await start({}, ', timeout: 60s, queue: {maxWait: 50s}');
  await api.post('/api/upstreams/till/block?for=40s');
  const waiting = ask();
  await eventually(
    async () => (await api.get('/api/status')).json()['upstreams'] as { queued: number }[],
    ([till]) => till?.queued === 1,
  );
  const since = performance.now();
  await api.post('/api/upstreams/till/unblock');
  expect((await waiting).status).toBe(200);
  expect(performance.now() - since).toBeLessThan(20_000);
});

test('explains a rejection by an operator’s block, and its end', async () => {
  const { proxy, api, ask } = await start();
  await api.post('/api/upstreams/till/block?for=90s');
  const [till] = (await api.get('/api/status')).json()['upstreams'] as { until: string }[];
  const ended = await fetchExplanation(proxy, (await ask()).header('tidegate-request-id'));
  const decided = findStep(ended, 'decided');
  expect(decided).toMatchObject({ reason: 'blocked', state: 'blocked', blockedBy: 'operator' });
  const until = /an operator has blocked it until ([-\dT:.]+Z)/.exec(String(decided['text']))?.[1] ?? '';
  expect(Math.abs(Date.parse(until) - Date.parse(till?.until ?? ''))).toBeLessThan(1000);
  expect(ended.verdict).toContain('because an operator has blocked it until');
  await api.post('/api/upstreams/till/block');
  const endless = await fetchExplanation(proxy, (await ask()).header('tidegate-request-id'));
  expect(findStep(endless, 'decided')['text']).toContain(': an operator has blocked it until it is unblocked, ');
  for (const explanation of [ended, endless]) {
    expect(findStep(explanation, 'decided')['text']).not.toMatch(/probe|the limit/);
  }
});

test('explains a wait by an operator’s block', async () => {
  const { proxy, api, ask } = await start({}, ', queue: {maxWait: 5s}');
  await api.post('/api/upstreams/till/block?for=3s');
  const explanation = await fetchExplanation(proxy, (await ask()).header('tidegate-request-id'));
  expect(findStep(explanation, 'decided')['text']).toMatch(/^queued: an operator has blocked it until \d/);
});

test('explains a wait by the pinned rate, not by a lack of connections', async () => {
  const { proxy, api, flood } = await start({}, ', queue: {maxWait: 300ms}');
  await api.post('/api/upstreams/till/pin?rate=20/s');
  const answers = await flood(40);
  const explanations = await Promise.all(
    answers.map((answer) => fetchExplanation(proxy, answer.header('tidegate-request-id'))),
  );
  const decided = explanations
    .map((explanation) => findStep(explanation, 'decided'))
    .filter(({ decision }) => decision !== 'passed');
  expect(decided.length).toBeGreaterThan(20);
  for (const { text, pinnedPerSecond } of decided) {
    expect(text).toContain('an operator pinned the rate at 20/s');
    expect(pinnedPerSecond).toBe(20);
  }
});

test('rejects operator actions in observe mode', async () => {
  const upstream = await startUpstream();
  const proxy = await startTidegate(`${ADMIN}mode: observe\nupstreams: {till: {url: "${upstream.url}"}}\n`);
  const api = await openAdminApi(proxy.adminUrl ?? '');
  const answer = await api.post('/api/upstreams/till/pin?rate=1/s');
  expect(answer.status).toBe(409);
  expect(answer.json()['detail']).toMatch(/observe mode/);
});

test('allows undoing an action in observe mode, after a reload into it', async () => {
  const { api, proxy, upstream } = await start();
  await api.post('/api/upstreams/till/block');
  const yaml = `${ADMIN}mode: observe\nupstreams: {till: {url: "${upstream.url}"}}\n`;
  expect((await proxy.rewrite(yaml)).kind).toBe('applied');
  expect((await api.post('/api/upstreams/till/pin?rate=1/s')).status).toBe(409);
  expect((await api.post('/api/upstreams/till/unblock')).json()).toMatchObject({ blockedBy: null, state: 'open' });
});

test('applies and lists an action before any client has arrived, with one limit per client too', async () => {
  const { api, ask, proxy } = await start({}, ', rateLimit: {scope: client}');
  expect((await api.post('/api/upstreams/till/pin?rate=7/s')).json()).toMatchObject({ pinned: 7, rate: 7 });
  const blocked = (await api.post('/api/upstreams/till/block?for=5m')).json();
  expect(blocked).toMatchObject({ state: 'blocked', blockedBy: 'operator', pinned: 7 });
  expect((await ask()).status).toBe(503);
  expect(await proxy.metric('tidegate_ratelimit_steered{upstream="till",how="pinned"}')).toBe(1);
  expect(await proxy.metric('tidegate_ratelimit_steered{upstream="till",how="blocked"}')).toBe(1);
  await api.post('/api/upstreams/till/unblock');
  expect((await api.post('/api/upstreams/till/unpin')).json()).toMatchObject({ state: 'open', pinned: null });
  expect(await proxy.metric('tidegate_ratelimit_steered{upstream="till",how="blocked"}')).toBe(0);
});

test('keeps an action over a reload, also of the scope', async () => {
  const { api, proxy, upstream } = await start();
  await api.post('/api/upstreams/till/pin?rate=3/s');
  const scoped = (scope: string) =>
    proxy.rewrite(`${ADMIN}upstreams: {till: {url: "${upstream.url}", rateLimit: {scope: ${scope}}}}\n`);
  for (const scope of ['client', 'upstream']) {
    expect((await scoped(scope)).kind).toBe('applied');
    expect((await api.get('/api/status')).json()).toMatchObject({ upstreams: [{ scope, pinned: 3, rate: 3 }] });
  }
});

test('warns about a pin beyond the configured rate', async () => {
  const { api } = await start({}, ', rateLimit: {maxRate: 5/s}');
  const { notes } = (await api.post('/api/upstreams/till/pin?rate=10/s')).json();
  expect(notes).toContainEqual(expect.stringContaining('more than maxRate (5/s)'));
});

test('resets the allowance of a client that was cut', async () => {
  const { api, proxy } = await start({}, ', rateLimit: {initialRate: 5/s}, queue: {maxWait: 100ms}');
  const calm = () => send(proxy.url, '/', { headers: ['x-key', 'calm'] });
  await eventually(
    async () => {
      await Promise.all([
        calm(),
        ...Array.from({ length: 30 }, () => send(proxy.url, '/', { headers: ['x-key', 'greedy'] })),
      ]);
      return ((await api.get('/api/clients')).json()['clients'] as { key: string; allowance: number }[])[0];
    },
    (worst) => worst !== undefined && worst.allowance < 1,
  );
  const [worst] = (await api.get('/api/clients')).json()['clients'] as { key: string; state: string }[];
  const key = worst?.key ?? '';
  expect((await api.post(`/api/clients/${key}/reset`)).json()).toMatchObject({
    key,
    allowance: 1,
    state: 'normal',
    nextSlot: null,
  });
  const unknown = await api.post(`/api/clients/${key.slice(0, 8)}/reset`);
  expect(unknown.status).toBe(404);
  expect(unknown.json()['detail']).toContain(`Did you mean ${key}?`);
});

test.each([
  ['/api/upstreams/til/pin?rate=5/s', 404, 'Did you mean till?'],
  ['/api/upstreams/till/pin', 400, 'rate: is required'],
  ['/api/upstreams/till/pin?rate=5', 400, 'did you mean 5/s?'],
  ['/api/upstreams/till/pin?rate=0/s', 400, 'must be above 0'],
  ['/api/upstreams/till/block?for=5', 400, 'did you mean 5ms or 5s?'],
  ['/api/upstreams/till/block?until=5m', 400, "unknown parameter 'until'"],
  ['/api/upstreams/__proto__/unblock', 404, 'No such upstream'],
  ['/api/clients/%2e%2e/reset', 404, 'No such client'],
])('answers POST %s with %i and a reason', async (target, status, detail) => {
  const { api } = await start();
  const answer = await api.post(target);
  expect(answer.status).toBe(status);
  expect(answer.json()['detail']).toContain(detail);
});

test('validates a configuration without applying it or reading files for the caller', async () => {
  const { api } = await start();
  const valid = 'upstreams: {api: {url: "https://api.example.com"}}\n';
  expect((await api.post('/api/config/validate', valid)).json()).toEqual({ valid: true, warnings: [] });
  const wrong = await api.post(
    '/api/config/validate',
    'upstreams:\n  api: {url: "https://api.example.com", timout: 3s}\n',
  );
  expect(wrong.status).toBe(422);
  expect(wrong.json()['mistakes']).toEqual([
    { place: '2:41 upstreams.api.timout', message: 'unknown key (did you mean timeout?)' },
  ]);
  const withFile = await api.post('/api/config/validate', `secret: \${file:/etc/hostname}\n${valid}`);
  expect(withFile.status).toBe(422);
  expect(JSON.stringify(withFile.json())).toContain('cannot read /etc/hostname');
  expect((await api.post('/api/config/validate', `${valid}#${'x'.repeat(300_000)}`)).status).toBe(413);
});

test('becomes unready and exits when it is drained', async () => {
  const { api, ask, proxy } = await start();
  expect((await api.post('/drain')).json()).toMatchObject({ phase: 'draining' });
  await eventually(
    () =>
      ask().then(
        ({ status }) => status,
        () => 0,
      ),
    (status) => status !== 200,
  );
  expect(proxy.log()).toContainEqual(expect.objectContaining({ action: 'drain', by: '127.0.0.1' }));
});

const WRITES = [
  '/api/upstreams/till/pin?rate=5/s',
  '/api/clients/0123456789abcdef/reset',
  '/api/config/validate',
  '/drain',
];

test.each(WRITES)('requires the token for POST %s, on a loopback address too', async (target) => {
  const { proxy } = await start();
  const url = proxy.adminUrl ?? '';
  for (const headers of [
    [],
    ['Authorization', 'Bearer guess'],
    ['Authorization', TOKEN],
    ['Cookie', `token=${TOKEN}`],
  ]) {
    const answer = await send(url, target, { method: 'POST', headers });
    expect(answer.status).toBe(401);
    expect(answer.header('www-authenticate')).toBe('Bearer realm="tidegate"');
  }
  expect((await send(url, '/readyz')).status).toBe(200);
});

test.each(WRITES)('rejects POST %s where no token is configured, and explains how to set one', async (target) => {
  const upstream = await startUpstream();
  const proxy = await startTidegate(`upstreams: {till: {url: "${upstream.url}"}}\n`);
  const answer = await send(proxy.adminUrl ?? '', target, { method: 'POST' });
  expect(answer.status).toBe(403);
  expect(answer.json()['detail']).toContain('admin.token');
});

test.each([
  ['Origin', 'http://evil.example'],
  ['Origin', 'null'],
  ['Origin', 'http://127.0.0.1:1'],
  ['Sec-Fetch-Site', 'cross-site'],
  ['Sec-Fetch-Site', 'same-site'],
])('rejects a page that sends %s: %s, even with the token', async (name, value) => {
  const { proxy, api } = await start();
  const headers = ['Authorization', `Bearer ${TOKEN}`, name, value];
  const answer = await send(proxy.adminUrl ?? '', '/api/upstreams/till/pin?rate=5/s', { method: 'POST', headers });
  expect(answer.status).toBe(403);
  expect((await api.get('/api/status')).json()).toMatchObject({ upstreams: [{ pinned: null }] });
});

test('accepts its own page, also through a proxy with TLS', async () => {
  const { proxy } = await start();
  const { host } = new URL(proxy.adminUrl ?? '');
  for (const [origin, name] of [
    [`http://${host}`, host],
    ['https://gateway.internal', 'gateway.internal'],
  ] as const) {
    const headers = [
      'Authorization',
      `Bearer ${TOKEN}`,
      'Origin',
      origin,
      'Host',
      name,
      'Sec-Fetch-Site',
      'same-origin',
    ];
    const answer = await send(proxy.adminUrl ?? '', '/api/upstreams/till/unpin', { method: 'POST', headers });
    expect(answer.status).toBe(200);
  }
});

test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
  'rejects a body of type %s, which a form can send',
  async (type) => {
    const { proxy } = await start();
    const headers = ['Authorization', `Bearer ${TOKEN}`, 'Content-Type', type];
    for (const target of WRITES) {
      expect((await send(proxy.adminUrl ?? '', target, { method: 'POST', headers, body: 'x' })).status).toBe(415);
    }
  },
);

test('forbids framing and caching of its responses', async () => {
  const { proxy } = await start();
  for (const target of ['/api/status', '/api/events?x', '/nope', '/metrics']) {
    const answer = await send(proxy.adminUrl ?? '', target);
    expect(answer.header('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(answer.header('cache-control')).toBe('no-store');
    expect(answer.header('x-content-type-options')).toBe('nosniff');
  }
});

test('relies on file permissions on a Unix socket', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'admin.sock');
  const upstream = await startUpstream();
  await startTidegate(
    `admin: {listen: "unix:${path}", permissions: "0600"}\nupstreams: {till: {url: "${upstream.url}"}}\n`,
  );
  const status = await new Promise((resolve, reject) => {
    const sent = request({ socketPath: path, method: 'POST', path: '/api/upstreams/till/pin?rate=5/s' }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    sent.on('error', reject);
    sent.end();
  });
  expect(status).toBe(200);
});

test('offers no operator actions on the telemetry port', async () => {
  const upstream = await startUpstream();
  const proxy = await startTidegate(`${ADMIN}telemetry: 127.0.0.1:0\nupstreams: {till: {url: "${upstream.url}"}}\n`);
  for (const target of ['/api/status', '/api/events', '/api/openapi.json']) {
    expect((await send(proxy.telemetryUrl ?? '', target)).status).toBe(404);
  }
  for (const target of WRITES) {
    const headers = ['Authorization', `Bearer ${TOKEN}`];
    expect((await send(proxy.telemetryUrl ?? '', target, { method: 'POST', headers })).status).toBe(404);
  }
});

test('pins only this process where replicas share a limit through Redis, and reports that', async () => {
  const redis = await startRedis();
  const upstream = await startUpstream();
  const proxy = await startTidegate(
    `${ADMIN}state: {store: redis, url: "${redis.url}", timeout: 240ms}\nupstreams: {till: {url: "${upstream.url}", queue: {maxWait: 3s}}}\n`,
  );
  const api = await openAdminApi(proxy.adminUrl ?? '');
  const answer = (await api.post('/api/upstreams/till/pin?rate=20/s')).json();
  expect(answer).toMatchObject({ rate: 20, pinned: 20 });
  expect(answer['notes']).toContainEqual(expect.stringContaining('This process only'));
  const since = performance.now();
  const answers = await Promise.all(
    Array.from({ length: 15 }, (_, i) => send(proxy.url, '/', { headers: ['x-key', `k${i}`] })),
  );
  expect(performance.now() - since).toBeGreaterThan(650);
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 15 }, () => 200));
  await api.post('/api/upstreams/till/block');
  expect((await send(proxy.url, '/')).status).toBe(503);
  await api.post('/api/upstreams/till/unblock');
  await api.post('/api/upstreams/till/unpin');
  expect((await send(proxy.url, '/')).status).toBe(200);
});
