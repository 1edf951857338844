/** Routes in observe mode beside routes that enforce, at one upstream. */
import { expect, test } from 'vitest';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';

/** One request passes at once; the next would have to wait a minute. */
const ONE_AT_ONCE = 'rateLimit: {initialRate: 1/m, minRate: 1/m}, queue: {maxWait: 0}';

const ROUTES = 'routes: [{path: /, upstream: api}, {path: /new, upstream: api, mode: observe}]';

test('sends the requests of an observed route, and refuses those of the other', async () => {
  const upstream = await startRecordingUpstream();
  const proxy = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${ONE_AT_ONCE}}}\n${ROUTES}\n`);
  const statuses: number[] = [];
  for (const path of ['/new', '/new', '/old', '/new']) statuses.push((await send(proxy.url, path)).status);
  expect(statuses).toEqual([200, 200, 429, 200]);
  expect(upstream.received.map(({ target }) => target)).toEqual(['/new', '/new', '/new']);
  const [, second, refused] = await eventually(proxy.requests, ({ length }) => length === 4);
  expect(second).toMatchObject({ route: '/new', outcome: 'forwarded', wouldHave: 'refused over_share' });
  expect(refused).toMatchObject({ route: '/', status: 429 });
  expect(refused).not.toHaveProperty('wouldHave');
});

test('names the observed routes in metrics, and enforces as a whole', async () => {
  const upstream = await startRecordingUpstream();
  const proxy = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}\n${ROUTES}\n`);
  expect(await proxy.metric('tidegate_route_observed{route="/new"}')).toBe(1);
  expect(await proxy.metric('tidegate_route_observed{route="/"}')).toBe(0);
  expect(await proxy.metric('tidegate_mode{mode="enforce"}')).toBe(1);
});

test('retries on the enforced route only, and generates keys there only', async () => {
  const upstream = await startRecordingUpstream((_, response) => {
    response.statusCode = 503;
    response.end();
  });
  const retries = 'retry: {attempts: 2, backOff: {baseInterval: 1ms}}, idempotency: {generate: true}';
  const proxy = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${retries}}}\n${ROUTES}\n`);
  const attempts = async (path: string) => {
    const answer = await send(proxy.url, path, { method: 'POST' });
    return [answer.header('tidegate-attempts'), answer.header('tidegate-idempotency-key') !== undefined];
  };
  expect(await attempts('/new')).toEqual(['1', false]);
  expect(await attempts('/old')).toEqual(['2', true]);
});

test('sends a request of the observed route on the next free connection, before the queue of the other', async () => {
  const release: (() => void)[] = [];
  const upstream = await startRecordingUpstream((_, response) => void release.push(() => response.end()));
  const proxy = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", connections: 1, queue: {maxWait: 30s}, timeout: 60s, perTryTimeout: 60s}}\n${ROUTES}\n`,
  );
  const first = send(proxy.url, '/old');
  await eventually(
    () => release.length,
    (count) => count === 1,
  );
  const queued = send(proxy.url, '/old');
  await eventually(
    () => proxy.metric('tidegate_queue_depth{upstream="api"}'),
    (depth) => depth === 1,
  );
  const observed = send(proxy.url, '/new');
  await eventually(
    () => proxy.metric('tidegate_requests_in_flight{route="/new"}'),
    (count) => count === 1,
  );
  for (let sent = 1; sent <= 3; sent += 1) {
    await eventually(
      () => release.length,
      (count) => count === sent,
    );
    release[sent - 1]?.();
  }
  expect((await Promise.all([first, queued, observed])).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(upstream.received.map(({ target }) => target)).toEqual(['/old', '/new', '/old']);
});

test('pins the rate of an upstream with an enforced route, and refuses to where every route is observed', async () => {
  const upstream = await startRecordingUpstream();
  const proxy = await startTidegate(`
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
upstreams: {api: {url: "${upstream.url}"}, watched: {url: "${upstream.url}", mode: observe}}
routes: [{path: /, upstream: api}, {path: /new, upstream: api, mode: observe}, {path: /watched, upstream: watched}]
`);
  const api = await openAdminApi(proxy.adminUrl ?? '');
  expect((await api.post('/api/upstreams/api/pin?rate=5/s')).status).toBe(200);
  const refused = await api.post('/api/upstreams/watched/pin?rate=5/s');
  expect(refused.status).toBe(409);
  expect(refused.json()['detail']).toMatch(/observe mode/);
  expect((await api.get('/api/status')).json()).toMatchObject({
    mode: 'enforce',
    observedRoutes: ['/new', '/watched'],
  });
});
