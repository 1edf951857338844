import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startGitHubPoints, startShopifyGraphql, startTokenApi } from '../../support/providers/metered-apis.ts';

const GRAPHQL = '/admin/api/2026-10/graphql.json';
const JSON_BODY = { 'Content-Type': 'application/json' };

test('github: writes take five points, so that the secondary limit is never exceeded', async () => {
  const github = await startGitHubPoints(900);
  const { load } = await startProviderProxy('github', github, 'timeout: 60s');
  await load(20, 6, (n) => ({ method: n % 2 === 0 ? 'POST' : 'GET', path: '/repos/a/b/issues' }));
  expect(github.refused()).toBe(0);
  expect(github.units()).toBeGreaterThan(0.7 * 6 * 15);
});

test('shopify: queries of any cost are sent as fast as the bucket refills, and hardly any is throttled', async () => {
  const shopify = await startShopifyGraphql(1000, 100);
  const { load, tidegate } = await startProviderProxy('shopify', shopify, 'timeout: 60s');
  const costs = [5, 40, 10, 120];
  await load(20, 12, (n) => {
    const actual = costs[n % costs.length];
    return { method: 'POST', path: GRAPHQL, headers: JSON_BODY, body: JSON.stringify({ actual, requested: actual }) };
  });
  // The bucket at the start, and what it has regained.
  const available = 1000 + 12 * 100;
  expect(shopify.units()).toBeGreaterThan(0.6 * available);
  const sent = shopify.accepted.get(GRAPHQL) ?? 0;
  expect(shopify.refused()).toBeLessThanOrEqual(Math.max(3, 0.05 * sent));
  const settled = await tidegate.metric('tidegate_settled_costs_total{upstream="api",limit="points"}');
  expect(settled).toBeGreaterThan(0.9 * sent);
});

test('openai: learns the limit on tokens beside that on requests, and cuts only the one that is met', async () => {
  const api = await startTokenApi({ requests: 60_000, tokens: 3_000_000 }, 1);
  const { load, tidegate } = await startProviderProxy('openai', api, 'timeout: 60s');
  const tokens = [250, 2000, 500, 1250]; // the preset expects 1000
  await load(100, 15, (n) => {
    const body = JSON.stringify({ tokens: tokens[n % tokens.length] });
    return { method: 'POST', path: '/v1/responses', headers: JSON_BODY, body };
  });
  expect(api.units()).toBeGreaterThan(0.7 * 15 * 50_000);
  expect(api.refused()).toBeLessThan(0.25 * (api.accepted.get('/v1/responses') ?? 0));
  const { limits } = tidegate.view();
  const limitOf = (name: string) => limits.find(({ nested }) => nested === name);
  expect(limitOf('')?.state).toBe('open');
  const rate = limitOf('tokens')?.rate ?? 0;
  expect(rate).toBeGreaterThan(30_000);
  expect(rate).toBeLessThan(65_000);
});

test('github: other requests do not wait behind the searches of their client', async () => {
  const github = await startGitHubPoints(9000);
  const { tidegate } = await startProviderProxy('github', github, 'timeout: 60s');
  let found = 0;
  const search = async (): Promise<void> => {
    await fetch(`${tidegate.url}/search/issues`);
    found += 1;
  };
  const searches = Array.from({ length: 8 }, search); // 30 a minute
  await Promise.all(Array.from({ length: 8 }, () => fetch(`${tidegate.url}/repos/a/b/issues`)));
  expect(found).toBeLessThan(8);
  await Promise.all(searches);
});
