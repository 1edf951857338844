/** The admin API: what it reports about a proxy with traffic, and how it rejects invalid requests. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { send } from '../../support/clients/send.ts';
import { watchEvents } from '../../support/admin/event-viewer.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const ADMIN = `admin: {listen: "127.0.0.1:0", token: ${TOKEN}}\nclients: {key: [header:x-key, ip]}\n`;

async function start(yaml = '', limit: Parameters<typeof startUpstream>[0] = {}) {
  const upstream = await startUpstream(limit);
  const proxy = await startTidegate(`${ADMIN}upstreams: {till: {url: "${upstream.url}"${yaml}}}\n`);
  const api = await openAdminApi(proxy.adminUrl ?? '');
  return { proxy, api, ask: (key: string) => send(proxy.url, '/charges', { headers: ['x-key', key] }) };
}

test('serves an OpenAPI document that names every route', async () => {
  const { api } = await start();
  const result = await new Validator().validate({ ...api.document });
  expect(result).toMatchObject({ valid: true });
  expect(Object.keys(api.document.paths).toSorted()).toMatchInlineSnapshot(`
    [
      "/api/clients",
      "/api/clients/{key}/quotas",
      "/api/clients/{key}/quotas/reset",
      "/api/clients/{key}/reset",
      "/api/config",
      "/api/config/validate",
      "/api/deliveries",
      "/api/deliveries/{id}",
      "/api/deliveries/{id}/cancel",
      "/api/deliveries/{id}/retry",
      "/api/events",
      "/api/history",
      "/api/keys",
      "/api/keys/{id}",
      "/api/openapi.json",
      "/api/requests",
      "/api/status",
      "/api/timeline",
      "/api/upstreams/{name}/block",
      "/api/upstreams/{name}/pin",
      "/api/upstreams/{name}/unblock",
      "/api/upstreams/{name}/unpin",
      "/drain",
      "/explain/{id}",
    ]
  `);
});

test('returns the requests sent, their outcomes and the learned rates in the status', async () => {
  const { api, ask } = await start('', { limit: { kind: 'token-bucket', rate: 20, burst: 5 } });
  await api.get('/api/status'); // rates are measured since then
  await Promise.all(Array.from({ length: 40 }, () => ask('a')));
  const status = (await api.get('/api/status')).json();
  expect(status).toMatchObject({
    mode: 'enforce',
    phase: 'ready',
    workers: 1,
    store: { kind: 'memory', degraded: false },
    clients: { tracked: 1 },
    upstreams: [{ name: 'till', scope: 'upstream', pinned: null, limits: 1, endpoints: [{ healthy: true }] }],
  });
  const { requests, upstreams } = status as unknown as {
    readonly requests: { readonly outcomes: Record<string, number>; readonly p50Seconds: number };
    readonly upstreams: readonly {
      readonly rate: number;
      readonly throttledPerSecond: number;
      readonly state: string;
    }[];
  };
  expect(Object.values(requests.outcomes).reduce((sum, each) => sum + each, 0)).toBe(40);
  expect(requests.p50Seconds).toBeGreaterThan(0);
  expect(upstreams[0]?.rate).toBeLessThan(100);
  expect(upstreams[0]?.throttledPerSecond).toBeGreaterThan(0);
  expect(upstreams[0]?.state).not.toBe('open');
  const { events } = (await api.get('/api/timeline')).json() as { events: readonly { kind: string; text: string }[] };
  expect(events.find(({ kind }) => kind === 'cut')?.text).toMatch(/^rate cut .*to \d+\/s/);
  expect(events.some(({ kind }) => kind === 'state')).toBe(true);
  const excluding = (await api.get('/api/timeline?exclude=state')).json() as { events: typeof events };
  expect(excluding.events).toEqual(events.filter(({ kind }) => kind !== 'state'));
});

test('lists clients page by page, each once', async () => {
  const { api, ask } = await start();
  for (let i = 0; i < 25; i += 1) await ask(`k${i}`);
  const seen: string[] = [];
  let cursor: string | null = '';
  let pages = 0;
  while (cursor !== null) {
    const page = (await api.get(`/api/clients?limit=10${cursor === '' ? '' : `&cursor=${cursor}`}`)).json() as {
      readonly total: number;
      readonly next: string | null;
      readonly clients: readonly { readonly key: string }[];
    };
    expect(page.total).toBe(25);
    seen.push(...page.clients.map(({ key }) => key));
    cursor = page.next;
    pages += 1;
  }
  expect(pages).toBe(3);
  expect(new Set(seen).size).toBe(25);
  const part = seen[7]?.slice(2, 9) ?? '';
  expect((await api.get(`/api/clients?search=${part}`)).json()).toMatchObject({
    matching: 1,
    clients: [{ key: seen[7] }],
  });
  expect((await api.get('/api/clients?state=held')).json()).toMatchObject({ total: 25, matching: 0, clients: [] });
  expect((await api.get('/api/clients?upstream=other')).json()).toMatchObject({ matching: 0 });
});

test('lists requests newest first, with filters', async () => {
  const { api, ask, proxy } = await start();
  for (let i = 0; i < 7; i += 1) await ask('a');
  await send(proxy.url, '/other?secret=1', { method: 'POST', headers: ['x-key', 'b'], body: 'x' });
  const first = (await api.get('/api/requests?limit=5')).json() as {
    requests: { path: string; id: string }[];
    next: string;
  };
  expect(first.requests[0]).toMatchObject({ method: 'POST', path: '/other', attempts: 1, outcome: 'forwarded' });
  const rest = (await api.get(`/api/requests?limit=5&cursor=${first.next}`)).json() as {
    requests: { id: string }[];
    next: null;
  };
  expect(rest.requests).toHaveLength(3);
  expect(rest.next).toBeNull();
  expect(new Set([...first.requests, ...rest.requests].map(({ id }) => id)).size).toBe(8);
  expect((await api.get('/api/requests?outcome=refused')).json()).toMatchObject({ requests: [] });
});

test('explains a request as its schema defines', async () => {
  const { api, ask } = await start();
  const id = (await ask('a')).header('tidegate-request-id') ?? '';
  expect((await api.get(`/explain/${id}`)).json()).toMatchObject({ id, outcome: 'forwarded', path: '/charges' });
  expect((await api.get('/explain/none-1')).status).toBe(404);
  expect((await api.get(`/explain/${id}?verbose`)).status).toBe(400);
});

test('returns the configuration without its secrets', async () => {
  const { api } = await start();
  const { body } = await api.get('/api/config');
  expect(body.toString()).not.toContain(TOKEN);
  expect(JSON.parse(body.toString())).toMatchObject({ admin: { token: '***' }, mode: 'enforce' });
});

test.each([
  ['/api/clients?stat=held', 400, /unknown parameter 'stat' \(did you mean state\?\)/],
  ['/api/clients?state=hold', 400, /state: /],
  ['/api/clients?limit=0', 400, /limit: expected 1 to 500/],
  ['/api/requests?limit=1001', 400, /limit: expected 1 to 500/],
  ['/api/clients?limit=1&limit=2', 400, /limit: /],
  ['/api/clients?cursor=nonsense', 400, /cursor: /],
  ['/api/requests?cursor=WzBd.', 200, /requests/],
  ['/api/status?verbose', 400, /unknown parameter 'verbose'/],
  ['/api/events?token=x', 400, /must not be part of a URL/],
  ['/api/staus', 404, /Did you mean \/api\/status\?/],
  ['/api/upstreams/till', 404, /No such path/],
] as const)('answers GET %s with %i and a reason', async (target, status, pattern) => {
  const { api } = await start();
  const received = await api.get(target);
  expect(received.status).toBe(status);
  expect(received.body.toString()).toMatch(pattern);
});

test.each([
  ['POST', '/api/status', 'GET, HEAD'],
  ['DELETE', '/api/clients', 'GET, HEAD'],
  ['PURGE', '/api/requests', 'GET, HEAD'],
  ['HEAD', '/api/events', 'GET'],
  ['GET', '/api/upstreams/till/pin', 'POST'],
  ['PUT', '/drain', 'POST'],
])('answers %s %s with 405 and the allowed methods', async (method, target, allow) => {
  const { proxy } = await start();
  const received = await send(proxy.adminUrl ?? '', target, { method });
  expect(received.status).toBe(405);
  expect(received.header('allow')).toBe(allow);
});

test('sends every event to a viewer, and sends unchanged data once', async () => {
  const { proxy, api, ask } = await start();
  const one = watchEvents(proxy.adminUrl ?? '');
  const other = watchEvents(proxy.adminUrl ?? '');
  await eventually(
    () => [one.of('status').length, other.of('status').length],
    ([a = 0, b = 0]) => a > 1 && b > 1,
  );
  await ask('a');
  await api.post('/api/upstreams/till/pin?rate=50/s');
  await eventually(
    () => one.of('requests').length + one.of('timeline').length,
    (count) => count > 1,
  );
  api.fits('StatusFrame', one.of('status')[0]);
  api.fits('RequestsFrame', one.of('requests')[0]);
  api.fits('TimelineEvent', one.of('timeline')[0]);
  expect(one.of('timeline')[0]).toMatchObject({ kind: 'pin', upstream: 'till' });
  await eventually(
    () => one.of('status').at(-1),
    (frame) => JSON.stringify(frame).includes('"pinned":50'),
  );
  // Both viewers received the same frame, id included.
  await eventually(
    () => one.raw().filter((text) => other.raw().includes(text)).length,
    (shared) => shared >= 3,
  );
});

test('bounds the number of viewers, and frees a place when one leaves', async () => {
  const { proxy } = await start();
  const viewers = Array.from({ length: 32 }, () => watchEvents(proxy.adminUrl ?? ''));
  await eventually(
    () => viewers.filter((viewer) => viewer.of('status').length > 0).length,
    (seen) => seen === 32,
  );
  const refused = await send(proxy.adminUrl ?? '', '/api/events');
  expect(refused.status).toBe(503);
  expect(refused.json()).toMatchObject({ status: 503, title: 'Service Unavailable' });
  viewers[0]?.close();
  const late = await eventually(async () => {
    const viewer = watchEvents(proxy.adminUrl ?? '');
    await new Promise((resolve) => void setTimeout(resolve, 100));
    return viewer.status() === 200;
  }, Boolean);
  expect(late).toBe(true);
});
