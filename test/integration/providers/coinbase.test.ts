import { expect, test } from 'vitest';
import { startBehind } from '../../support/providers/behind.ts';
import { startCoinbase } from '../../support/providers/coinbase.ts';

test('an hour is spread evenly: nothing is refused even where most of it is spent', async () => {
  const coinbase = await startCoinbase({ left: 6 });
  const { load } = await startBehind('coinbase', coinbase);
  await load(20, 5, () => ({ method: 'GET', path: '/v2/accounts' }));
  expect(coinbase.refused()).toBe(0);
  expect(coinbase.accepted.get('/v2/accounts')).toBeGreaterThan(0.6 * (10_000 / 3600) * 5);
});

test('what is refused is told by its name; an order is sent once', async () => {
  const coinbase = await startCoinbase({ left: 1 });
  const { send, throttled } = await startBehind('coinbase', coinbase, 'rateLimit: {initialRate: 100/s}');
  coinbase.plan('lost', 'reset-after');
  expect((await send('POST', '/v2/accounts/a/transactions', { intent: 'lost', body: '{}' })).status).toBe(504);
  expect((await send('POST', '/v2/accounts/a/transactions', { intent: 'late', body: '{}' })).status).toBe(429);
  expect(await throttled('rate_limit_exceeded')).toBe(1);
  expect(Object.fromEntries(coinbase.charges)).toEqual({ lost: 1 });
});
