import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startAdyen } from '../../support/providers/adyen.ts';

const pay = (intent: string, key: string) => ({
  intent,
  headers: ['Idempotency-Key', key],
  body: '{"amount":{"value":1}}',
});

test('forwards a refused payment as the response it is, without a retry', async () => {
  const adyen = await startAdyen();
  const { send, cuts } = await startProviderProxy('adyen', adyen);
  adyen.planFaults('poor', { status: 200, body: { resultCode: 'Refused', refusalReason: 'Not enough balance' } });
  const answer = await send('POST', '/v71/payments', pay('poor', 'a'));
  expect([answer.status, answer.json()['resultCode'], answer.header('tidegate-attempts')]).toEqual([
    200,
    'Refused',
    '1',
  ]);
  expect([adyen.charges.size, await cuts()]).toEqual([0, 0]);
});

test('makes a payment once even if its response is lost and its key is in progress', async () => {
  const adyen = await startAdyen();
  const { send } = await startProviderProxy('adyen', adyen);
  adyen.planFaults('lost', 'reset-after');
  expect((await send('POST', '/v71/payments', pay('lost', 'a'))).json()).toEqual({ resultCode: 'Authorised' });
  adyen.planFaults('held', { status: 422, body: { status: 422, errorCode: '704' } });
  expect((await send('POST', '/v71/payments', pay('held', 'b'))).json()).toEqual({ resultCode: 'Authorised' });
  expect(Object.fromEntries(adyen.charges)).toEqual({ lost: 1, held: 1 });
});

test('retries neither what Adyen marks as final nor another 422', async () => {
  const adyen = await startAdyen();
  const { send } = await startProviderProxy('adyen', adyen);
  adyen.planFaults('no', { status: 500, headers: { 'transient-error': 'false' } });
  adyen.planFaults('wrong', { status: 422, body: { errorCode: '167' } });
  for (const [intent, status] of [
    ['no', 500],
    ['wrong', 422],
  ] as const) {
    const answer = await send('POST', '/v71/payments', pay(intent, intent));
    expect([answer.status, answer.header('tidegate-attempts')]).toEqual([status, '1']);
  }
});

test('learns a limit that is not published', async () => {
  const adyen = await startAdyen({ rate: 30 });
  const { load } = await startProviderProxy('adyen', adyen);
  await load(60, 6, () => ({ method: 'GET', path: '/v71/paymentMethods' }));
  // The limit is hit, and then kept: some requests are rejected, and most of the rate is used.
  expect(adyen.refused()).toBeGreaterThan(0);
  expect(adyen.refused() / adyen.arrivals.length).toBeLessThan(0.3);
  expect(adyen.accepted.get('/v71/paymentMethods')).toBeGreaterThan(0.5 * 30 * 6);
});
