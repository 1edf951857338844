import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startCoinbase } from '../../support/providers/coinbase.ts';

test('spreads the hourly quota evenly, so that nothing is rejected even when most of it is spent', async () => {
  const coinbase = await startCoinbase({ left: 6 });
  const { load } = await startProviderProxy('coinbase', coinbase);
  await load(20, 5, () => ({ method: 'GET', path: '/v2/accounts' }));
  expect(coinbase.refused()).toBe(0);
  expect(coinbase.accepted.get('/v2/accounts')).toBeGreaterThan(0.6 * (10_000 / 3600) * 5);
});

test('recognizes a rejection by its name, and sends an order once', async () => {
  const coinbase = await startCoinbase({ left: 1 });
  const { send, throttled } = await startProviderProxy('coinbase', coinbase, 'rateLimit: {initialRate: 100/s}');
  coinbase.planFaults('lost', 'reset-after');
  expect((await send('POST', '/v2/accounts/a/transactions', { intent: 'lost', body: '{}' })).status).toBe(504);
  expect((await send('POST', '/v2/accounts/a/transactions', { intent: 'late', body: '{}' })).status).toBe(429);
  expect(await throttled('rate_limit_exceeded')).toBe(1);
  expect(Object.fromEntries(coinbase.charges)).toEqual({ lost: 1 });
});
