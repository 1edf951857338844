import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startShopify } from '../../support/providers/shopify.ts';

const GRAPHQL = '/admin/api/2026-10/graphql.json';

test('never overruns the leaky bucket', async () => {
  const shopify = await startShopify();
  const { load } = await startProviderProxy('shopify', shopify);
  await load(20, 5, () => ({ method: 'GET', path: '/admin/api/2026-10/orders.json' }));
  expect(shopify.refused()).toBe(0);
  expect(shopify.accepted.get('/admin/api/2026-10/orders.json')).toBeGreaterThan(0.6 * 2 * 5);
});

test.each([
  [GRAPHQL, 'THROTTLED'],
  ['/api/2026-10/graphql.json', 'Throttled'],
])('retries a throttled 200, and makes the mutation once (%s)', async (path, code) => {
  const shopify = await startShopify();
  const { send, throttled } = await startProviderProxy('shopify', shopify, 'rateLimit: {initialRate: 50/s}', '150ms');
  const intents = ['a', 'b', 'c', 'd'];
  const answers = await Promise.all(intents.map((intent) => send('POST', path, { intent, body: '{}' })));
  for (const answer of answers) expect(answer.json()).toEqual({ data: { done: true } });
  expect(shopify.refused()).toBeGreaterThan(0);
  expect(await throttled(code)).toBe(shopify.refused());
  expect(Object.fromEntries(shopify.charges)).toEqual({ a: 1, b: 1, c: 1, d: 1 });
});

test('does not repeat an order whose response is lost', async () => {
  const shopify = await startShopify();
  const { send } = await startProviderProxy('shopify', shopify);
  shopify.planFaults('lost', 'reset-after');
  expect((await send('POST', '/admin/api/2026-10/orders.json', { intent: 'lost', body: '{}' })).status).toBe(504);
  expect(Object.fromEntries(shopify.charges)).toEqual({ lost: 1 });
});
