import { expect, test } from 'vitest';
import { startBehind } from '../../support/providers/behind.ts';
import { startRazorpay } from '../../support/providers/razorpay.ts';

const SECONDS = 4;

test('payouts go at their 5/s, and hold nothing else up', async () => {
  const razorpay = await startRazorpay();
  const { load } = await startBehind('razorpay', razorpay);
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

test('a payout is made once; an order is not sent again, whatever key it carries', async () => {
  const razorpay = await startRazorpay();
  const { send } = await startBehind('razorpay', razorpay);
  const order = (path: string, intent: string) =>
    send('POST', path, { intent, headers: ['X-Payout-Idempotency', `key-${intent}`], body: '{}' });
  razorpay.plan('payout', 'reset-after');
  expect((await order('/v1/payouts', 'payout')).status).toBe(200);
  razorpay.plan('order', 'reset-after');
  expect((await order('/v1/orders', 'order')).status).toBe(504);
  razorpay.plan('capture', { status: 503 });
  expect((await order('/v1/payments/pay_1/capture', 'capture')).status).toBe(503);
  // Without a key it is not made at all, and that is no reason to ask again.
  const bare = await send('POST', '/v1/payouts', { intent: 'bare', body: '{}' });
  expect([bare.status, bare.header('tidegate-attempts')]).toEqual([400, '1']);
  expect(Object.fromEntries(razorpay.charges)).toEqual({ payout: 1, order: 1 });
});
