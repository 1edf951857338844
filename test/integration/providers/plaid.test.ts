import { expect, test } from 'vitest';
import { startBehind } from '../../support/providers/behind.ts';
import { startPlaid } from '../../support/providers/plaid.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };

test('reads are POSTs, and sent again when an Item was asked for too often', async () => {
  const plaid = await startPlaid();
  const { load, throttled, tidegate } = await startBehind('plaid', plaid);
  const answered = await load(40, 5, (n) => ({
    method: 'POST',
    path: '/transactions/sync',
    headers: JSON_TYPE,
    body: JSON.stringify({ access_token: `item-${n % 2}` }),
  }));
  expect(plaid.refused()).toBeGreaterThan(0);
  expect(await throttled('TRANSACTIONS_SYNC_LIMIT')).toBe(plaid.refused());
  expect(await tidegate.metric('tidegate_retries_total{upstream="api",reason="status_429"}')).toBeGreaterThan(0);
  // What Items may be asked for is asked for, nearly all of it.
  expect(answered[200]).toBeGreaterThan(0.5 * (100 / 3) * 5);
});

test('a limit of Items that may be added is no limit of requests: it is passed on at once, and cuts nothing', async () => {
  const plaid = await startPlaid();
  const { send, cuts, throttled } = await startBehind('plaid', plaid);
  for (let i = 0; i < 5; i += 1) {
    const answer = await send('POST', '/item/public_token/exchange', { body: '{}' });
    expect([answer.status, answer.header('tidegate-attempts')]).toEqual([429, '1']);
  }
  expect([await cuts(), await throttled('.*')]).toEqual([0, 0]);
});

test('what creates something without a key is sent once', async () => {
  const plaid = await startPlaid();
  const { send } = await startBehind('plaid', plaid);
  plaid.plan('transfer', 'reset-after');
  const answer = await send('POST', '/transfer/create', {
    intent: 'transfer',
    headers: ['Content-Type', 'application/json', 'Idempotency-Key', 'a'],
    body: '{}',
  });
  expect([answer.status, plaid.charges.get('transfer')]).toEqual([504, 1]);
});

test('with a key in its body it is sent again, and done once', async () => {
  const plaid = await startPlaid();
  const { send } = await startBehind('plaid', plaid);
  plaid.plan('transfer', { status: 503 }, 'reset-after');
  const headers = ['Content-Type', 'application/json'];
  const answer = await send('POST', '/transfer/create', {
    intent: 'transfer',
    headers,
    body: '{"idempotency_key":"a"}',
  });
  expect([answer.status, answer.header('tidegate-attempts'), plaid.charges.get('transfer')]).toEqual([200, '3', 1]);
});
