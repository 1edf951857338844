import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startPlaid } from '../../support/providers/plaid.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };

test('retries reads, which are POSTs, after a rate limit of an Item', async () => {
  const plaid = await startPlaid();
  const { load, throttled, tidegate } = await startProviderProxy('plaid', plaid);
  const answered = await load(40, 5, (n) => ({
    method: 'POST',
    path: '/transactions/sync',
    headers: JSON_TYPE,
    body: JSON.stringify({ access_token: `item-${n % 2}` }),
  }));
  expect(plaid.refused()).toBeGreaterThan(0);
  expect(await throttled('TRANSACTIONS_SYNC_LIMIT')).toBe(plaid.refused());
  expect(await tidegate.metric('tidegate_retries_total{upstream="api",reason="status_429"}')).toBeGreaterThan(0);
  // Nearly all of what the limit of an Item allows is requested.
  expect(answered[200]).toBeGreaterThan(0.5 * (100 / 3) * 5);
});

test('forwards a limit of Items that can be added at once, and does not cut the rate', async () => {
  const plaid = await startPlaid();
  const { send, cuts, throttled } = await startProviderProxy('plaid', plaid);
  for (let i = 0; i < 5; i += 1) {
    const answer = await send('POST', '/item/public_token/exchange', { body: '{}' });
    expect([answer.status, answer.header('tidegate-attempts')]).toEqual([429, '1']);
  }
  expect([await cuts(), await throttled('.*')]).toEqual([0, 0]);
});

test('sends an unkeyed creation once', async () => {
  const plaid = await startPlaid();
  const { send } = await startProviderProxy('plaid', plaid);
  plaid.planFaults('transfer', 'reset-after');
  const answer = await send('POST', '/transfer/create', {
    intent: 'transfer',
    headers: ['Content-Type', 'application/json', 'Idempotency-Key', 'a'],
    body: '{}',
  });
  expect([answer.status, plaid.charges.get('transfer')]).toEqual([504, 1]);
});

test('retries a creation with a key in its body, which takes effect once', async () => {
  const plaid = await startPlaid();
  const { send } = await startProviderProxy('plaid', plaid);
  plaid.planFaults('transfer', { status: 503 }, 'reset-after');
  const headers = ['Content-Type', 'application/json'];
  const answer = await send('POST', '/transfer/create', {
    intent: 'transfer',
    headers,
    body: '{"idempotency_key":"a"}',
  });
  expect([answer.status, answer.header('tidegate-attempts'), plaid.charges.get('transfer')]).toEqual([200, '3', 1]);
});
