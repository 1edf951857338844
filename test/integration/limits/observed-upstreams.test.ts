/** An upstream in observe mode beside one that is enforced. */
import { expect, test } from 'vitest';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';

/** One request passes at once; the next would have to wait a minute. */
const ONE_AT_ONCE = 'rateLimit: {initialRate: 1/m, minRate: 1/m}, queue: {maxWait: 0}';

const ROUTES = 'routes: [{path: /, upstream: api}, {path: /new, upstream: watched}]';

const upstreams = (url: string, settings: string) =>
  `upstreams: {api: {url: "${url}", ${settings}}, watched: {url: "${url}", ${settings}, mode: observe}}\n${ROUTES}\n`;

test('sends the requests of the observed upstream, and refuses those of the other', async () => {
  const upstream = await startRecordingUpstream();
  const proxy = await startTidegate(upstreams(upstream.url, ONE_AT_ONCE));
  const statuses: number[] = [];
  for (const path of ['/new', '/old', '/new', '/old']) statuses.push((await send(proxy.url, path)).status);
  expect(statuses).toEqual([200, 200, 200, 429]);
  expect(upstream.received.map(({ target }) => target)).toEqual(['/new', '/old', '/new']);
  const [, , observed, refused] = await eventually(proxy.requests, ({ length }) => length === 4);
  expect(observed).toMatchObject({ route: '/new', outcome: 'forwarded', wouldHave: 'refused over_share' });
  expect(refused).toMatchObject({ route: '/', status: 429 });
  expect(refused).not.toHaveProperty('wouldHave');
});

test('names the observed upstream in metrics, and enforces as a whole', async () => {
  const upstream = await startRecordingUpstream();
  const proxy = await startTidegate(upstreams(upstream.url, 'timeout: 5s'));
  expect(await proxy.metric('tidegate_upstream_observed{upstream="watched"}')).toBe(1);
  expect(await proxy.metric('tidegate_upstream_observed{upstream="api"}')).toBe(0);
  expect(await proxy.metric('tidegate_mode{mode="enforce"}')).toBe(1);
});

test('retries and generates keys for the enforced upstream only', async () => {
  const upstream = await startRecordingUpstream((_, response) => {
    response.statusCode = 503;
    response.end();
  });
  const proxy = await startTidegate(
    upstreams(upstream.url, 'retry: {attempts: 2, backOff: {baseInterval: 1ms}}, idempotency: {generate: true}'),
  );
  const attempts = async (path: string) => {
    const answer = await send(proxy.url, path, { method: 'POST' });
    return [answer.header('tidegate-attempts'), answer.header('tidegate-idempotency-key') !== undefined];
  };
  expect(await attempts('/new')).toEqual(['1', false]);
  expect(await attempts('/old')).toEqual(['2', true]);
});

test('pins the rate of the enforced upstream, and refuses to pin that of the other', async () => {
  const upstream = await startRecordingUpstream();
  const admin = `admin: {listen: "127.0.0.1:0", token: ${TOKEN}}\n`;
  const proxy = await startTidegate(`${admin}${upstreams(upstream.url, 'timeout: 5s')}`);
  const api = await openAdminApi(proxy.adminUrl ?? '');
  expect((await api.post('/api/upstreams/api/pin?rate=5/s')).status).toBe(200);
  const refused = await api.post('/api/upstreams/watched/pin?rate=5/s');
  expect(refused.status).toBe(409);
  expect(refused.json()['detail']).toMatch(/observe mode/);
  expect((await api.get('/api/status')).json()).toMatchObject({ mode: 'enforce', observedUpstreams: ['watched'] });
});

test('begins to enforce an upstream after a reload, and the others stay as they are', async () => {
  const upstream = await startRecordingUpstream();
  const text = upstreams(upstream.url, ONE_AT_ONCE);
  const proxy = await startTidegate(text);
  for (let i = 0; i < 3; i += 1) expect((await send(proxy.url, '/new')).status).toBe(200);
  await proxy.rewrite(text.replace(', mode: observe', ''));
  expect((await send(proxy.url, '/new')).status).toBe(429);
  expect(await proxy.metric('tidegate_upstream_observed{upstream="watched"}')).toBe(0);
});
