import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startBraintree } from '../../support/providers/braintree.ts';

const SALES = '/merchants/m1/transactions';

test('sends a sale once, whatever its key or its outcome', async () => {
  const braintree = await startBraintree();
  const { send } = await startProviderProxy('braintree', braintree);
  const sale = (intent: string) =>
    send('POST', SALES, { intent, headers: ['Idempotency-Key', intent], body: '<sale/>' });
  braintree.planFaults('lost', 'reset-after');
  braintree.planFaults('busy', { status: 429 });
  braintree.planFaults('down', { status: 503 });
  const answers = [await sale('lost'), await sale('busy'), await sale('down'), await sale('fine')];
  expect(answers.map(({ status }) => status)).toEqual([504, 429, 503, 201]);
  expect(answers.map((answer) => answer.header('tidegate-attempts'))).toEqual(['1', '1', '1', '1']);
  expect(Object.fromEntries(braintree.charges)).toEqual({ lost: 1, fine: 1 });
});

test('retries a search, though it is a POST', async () => {
  const braintree = await startBraintree();
  const { send } = await startProviderProxy('braintree', braintree);
  const headers = ['X-Down', '1'];
  for (const search of [`${SALES}/advanced_search_ids`, '/merchants/m1/customers/advanced_search']) {
    expect((await send('POST', search, { headers, body: '<s/>' })).header('tidegate-attempts')).not.toBe('1');
  }
});

test('learns a limit that is not published', async () => {
  const braintree = await startBraintree({ rate: 30 });
  const { load } = await startProviderProxy('braintree', braintree);
  await load(60, 6, () => ({ method: 'GET', path: '/merchants/m1/plans' }));
  expect(braintree.refused()).toBeGreaterThan(0);
  expect(braintree.refused() / braintree.arrivals.length).toBeLessThan(0.3);
  expect(braintree.accepted.get('/merchants/m1/plans')).toBeGreaterThan(0.5 * 30 * 6);
});

test('treats a GraphQL 200 with RESOURCE_LIMIT as a 429, and forwards it, as mutations have no key', async () => {
  const braintree = await startBraintree();
  const { send, throttled } = await startProviderProxy('braintree', braintree);
  const answer = await send('POST', '/graphql', { body: '{}' });
  expect([answer.status, answer.header('tidegate-attempts')]).toEqual([200, '1']);
  expect(JSON.stringify(answer.json())).toContain('RESOURCE_LIMIT');
  expect([braintree.arrivals.length, await throttled('RESOURCE_LIMIT')]).toEqual([1, 1]);
});
