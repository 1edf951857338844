import { expect, test } from 'vitest';
import { startBehind } from '../../support/providers/behind.ts';
import { startBraintree } from '../../support/providers/braintree.ts';

const SALES = '/merchants/m1/transactions';

test('a sale is sent once, whatever key it carries and whatever comes of it', async () => {
  const braintree = await startBraintree();
  const { send } = await startBehind('braintree', braintree);
  const sale = (intent: string) =>
    send('POST', SALES, { intent, headers: ['Idempotency-Key', intent], body: '<sale/>' });
  braintree.plan('lost', 'reset-after');
  braintree.plan('busy', { status: 429 });
  braintree.plan('down', { status: 503 });
  const answers = [await sale('lost'), await sale('busy'), await sale('down'), await sale('fine')];
  expect(answers.map(({ status }) => status)).toEqual([504, 429, 503, 201]);
  expect(answers.map((answer) => answer.header('tidegate-attempts'))).toEqual(['1', '1', '1', '1']);
  expect(Object.fromEntries(braintree.charges)).toEqual({ lost: 1, fine: 1 });
});

test('a search is a POST that may be sent again', async () => {
  const braintree = await startBraintree();
  const { send } = await startBehind('braintree', braintree);
  const headers = ['X-Down', '1'];
  for (const search of [`${SALES}/advanced_search_ids`, '/merchants/m1/customers/advanced_search']) {
    expect((await send('POST', search, { headers, body: '<s/>' })).header('tidegate-attempts')).not.toBe('1');
  }
});

test('a limit that nobody publishes is found', async () => {
  const braintree = await startBraintree({ rate: 30 });
  const { load } = await startBehind('braintree', braintree);
  await load(60, 6, () => ({ method: 'GET', path: '/merchants/m1/plans' }));
  expect(braintree.refused()).toBeGreaterThan(0);
  expect(braintree.refused() / braintree.arrivals.length).toBeLessThan(0.3);
  expect(braintree.accepted.get('/merchants/m1/plans')).toBeGreaterThan(0.5 * 30 * 6);
});

test('a 200 of GraphQL with RESOURCE_LIMIT is felt as a 429, and passed on: a mutation has no key', async () => {
  const braintree = await startBraintree();
  const { send, throttled } = await startBehind('braintree', braintree);
  const answer = await send('POST', '/graphql', { body: '{}' });
  expect([answer.status, answer.header('tidegate-attempts')]).toEqual([200, '1']);
  expect(JSON.stringify(answer.json())).toContain('RESOURCE_LIMIT');
  expect([braintree.arrivals.length, await throttled('RESOURCE_LIMIT')]).toEqual([1, 1]);
});
