/** Paths whose requests are safer, or less safe, to repeat than their method implies. */
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

async function start(routes = '') {
  const upstream = await startHttpUpstream((_, response) => response.writeHead(500).end());
  const gate = await startTidegate(`
upstreams:
  api:
    url: ${upstream.url}
    retry:
      attempts: 2
      backOff: {strategy: fixed, baseInterval: 5ms}
      safePaths: [/accounts/get, {path: "/search/*", method: [POST, PATCH]}]
      neverPaths: [/payouts/**, {path: ["/orders/{id}"], method: PUT}]
${routes}`);
  /** The number of attempts. */
  const attempts = async (method: string, path: string, ...headers: string[]): Promise<number> => {
    const before = upstream.hits.length;
    const body = method === 'GET' ? {} : { body: '{}' };
    expect((await send(gate.url, path, { method, headers, ...body })).status).toBe(500);
    return upstream.hits.length - before;
  };
  return { gate, attempts };
}

test('retries an unkeyed POST on a path marked safe, but none with effects or another method', async () => {
  const { attempts } = await start();
  expect(await attempts('POST', '/accounts/get')).toBe(2);
  expect(await attempts('POST', '/accounts/get?x=/y')).toBe(2);
  expect(await attempts('PATCH', '/search/users')).toBe(2);
  expect(await attempts('PATCH', '/accounts/get')).toBe(1);
  expect(await attempts('POST', '/accounts/get/more')).toBe(1);
  expect(await attempts('POST', '/accounts')).toBe(1);
  expect(await attempts('POST', '/search')).toBe(1);
});

test('never retries on a path marked unsafe, even with a key or an idempotent method', async () => {
  const { gate, attempts } = await start();
  expect(await attempts('POST', '/other', 'Idempotency-Key', 'a')).toBe(2);
  expect(await attempts('POST', '/payouts/1', 'Idempotency-Key', 'b')).toBe(1);
  expect(await attempts('GET', '/payouts/1/items')).toBe(1);
  expect(await attempts('PUT', '/orders/7')).toBe(1);
  // Many servers collapse the double slash.
  expect(await attempts('PUT', '/orders//7')).toBe(1);
  expect(await attempts('DELETE', '/orders/7')).toBe(2);
  expect(await gate.metric('tidegate_retry_outcomes_total{upstream="api",outcome="not_idempotent"}')).toBe(4);
});

test('matches paths as the upstream sees them, and lets a route override them', async () => {
  const { gate, attempts } = await start(
    'routes: [{path: /bank, upstream: api, rewritePrefix: /}, {path: /own, upstream: api, retry: {safePaths: [/own/read], neverPaths: []}}]',
  );
  expect(await attempts('POST', '/bank/accounts/get')).toBe(2);
  expect(await attempts('POST', '/own/accounts/get')).toBe(1);
  expect(await attempts('POST', '/own/read')).toBe(2);
  expect(await attempts('PUT', '/own')).toBe(2);
  const lines = await eventually(
    () => gate.requests(),
    ({ length }) => length === 4,
  );
  // The failed read is not a write with an unknown outcome.
  expect(lines.map(({ outcome }) => outcome)).toEqual(['forwarded', 'unknown', 'forwarded', 'unknown']);
});
