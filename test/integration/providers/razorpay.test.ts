import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startRazorpay } from '../../support/providers/razorpay.ts';

const SECONDS = 4;

test('paces payouts at 5/s without delaying other requests', async () => {
  const razorpay = await startRazorpay();
  const { load } = await startProviderProxy('razorpay', razorpay);
  await load(60, SECONDS, (n) =>
    n % 4 === 0
      ? { method: 'POST', path: '/v1/payouts', headers: { 'X-Payout-Idempotency': `payout-${n}` }, body: '{}' }
      : { method: 'GET', path: '/v1/orders' },
  );
  const payouts = razorpay.accepted.get('/v1/payouts') ?? 0;
  expect(payouts).toBeGreaterThan(0.6 * 5 * SECONDS);
  expect(razorpay.refused()).toBeLessThan(0.2 * payouts);
  expect(razorpay.accepted.get('/v1/orders')).toBeGreaterThan(0.7 * 45 * SECONDS);
});

test('makes a payout once, and does not retry an order, whatever its key', async () => {
  const razorpay = await startRazorpay();
  const { send } = await startProviderProxy('razorpay', razorpay);
  const order = (path: string, intent: string) =>
    send('POST', path, { intent, headers: ['X-Payout-Idempotency', `key-${intent}`], body: '{}' });
  razorpay.planFaults('payout', 'reset-after');
  expect((await order('/v1/payouts', 'payout')).status).toBe(200);
  razorpay.planFaults('order', 'reset-after');
  expect((await order('/v1/orders', 'order')).status).toBe(504);
  razorpay.planFaults('capture', { status: 503 });
  expect((await order('/v1/payments/pay_1/capture', 'capture')).status).toBe(503);
  // Without a key the payout is rejected, which is no reason to retry.
  const bare = await send('POST', '/v1/payouts', { intent: 'bare', body: '{}' });
  expect([bare.status, bare.header('tidegate-attempts')]).toEqual([400, '1']);
  expect(Object.fromEntries(razorpay.charges)).toEqual({ payout: 1, order: 1 });
});
