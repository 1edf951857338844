import { expect, test } from 'vitest';
import { startBehind } from '../../support/providers/behind.ts';
import { startAdyen } from '../../support/providers/adyen.ts';

const pay = (intent: string, key: string) => ({
  intent,
  headers: ['Idempotency-Key', key],
  body: '{"amount":{"value":1}}',
});

test('a refused payment is an answer: it is passed on as it came, and not asked for again', async () => {
  const adyen = await startAdyen();
  const { send, cuts } = await startBehind('adyen', adyen);
  adyen.plan('poor', { status: 200, body: { resultCode: 'Refused', refusalReason: 'Not enough balance' } });
  const answer = await send('POST', '/v71/payments', pay('poor', 'a'));
  expect([answer.status, answer.json()['resultCode'], answer.header('tidegate-attempts')]).toEqual([
    200,
    'Refused',
    '1',
  ]);
  expect([adyen.charges.size, await cuts()]).toEqual([0, 0]);
});

test('a payment is made once, though its answer is lost and its key under way', async () => {
  const adyen = await startAdyen();
  const { send } = await startBehind('adyen', adyen);
  adyen.plan('lost', 'reset-after');
  expect((await send('POST', '/v71/payments', pay('lost', 'a'))).json()).toEqual({ resultCode: 'Authorised' });
  adyen.plan('held', { status: 422, body: { status: 422, errorCode: '704' } });
  expect((await send('POST', '/v71/payments', pay('held', 'b'))).json()).toEqual({ resultCode: 'Authorised' });
  expect(Object.fromEntries(adyen.charges)).toEqual({ lost: 1, held: 1 });
});

test('what Adyen says will not pass is not tried again, nor is another 422', async () => {
  const adyen = await startAdyen();
  const { send } = await startBehind('adyen', adyen);
  adyen.plan('no', { status: 500, headers: { 'transient-error': 'false' } });
  adyen.plan('wrong', { status: 422, body: { errorCode: '167' } });
  for (const [intent, status] of [
    ['no', 500],
    ['wrong', 422],
  ] as const) {
    const answer = await send('POST', '/v71/payments', pay(intent, intent));
    expect([answer.status, answer.header('tidegate-attempts')]).toEqual([status, '1']);
  }
});

test('a limit that nobody publishes is found', async () => {
  const adyen = await startAdyen({ rate: 30 });
  const { load } = await startBehind('adyen', adyen);
  await load(60, 6, () => ({ method: 'GET', path: '/v71/paymentMethods' }));
  // It is met once, and then kept to: some is refused, and most of the rate is used.
  expect(adyen.refused()).toBeGreaterThan(0);
  expect(adyen.refused() / adyen.arrivals.length).toBeLessThan(0.3);
  expect(adyen.accepted.get('/v71/paymentMethods')).toBeGreaterThan(0.5 * 30 * 6);
});
