import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { ENDPOINT_RATE, LOCKED, ONE_OBJECT, startStripe } from '../../support/providers/stripe.ts';

const SECONDS = 4;
const ENDPOINT = 25;

test('paces each endpoint at 25/s from the start, independently, and nearly nothing is rejected', async () => {
  const stripe = await startStripe();
  const { load } = await startProviderProxy('stripe', stripe);
  const paths = ['/v1/charges', '/v1/customers', '/v1/charges/ch_1'];
  await load(3 * 40, SECONDS, (n) => ({ method: 'GET', path: paths[n % 3] ?? '/' }));
  for (const path of paths) {
    const accepted = stripe.accepted.get(path) ?? 0;
    expect(accepted).toBeGreaterThan(0.7 * ENDPOINT * SECONDS);
  }
  expect(stripe.refused() / stripe.arrivals.length).toBeLessThan(0.05);
});

test('does not cut the account’s rate for a rejection by an unlisted endpoint', async () => {
  const stripe = await startStripe();
  const { send, cuts, tidegate } = await startProviderProxy('stripe', stripe);
  for (let i = 0; i < 8; i += 1) {
    stripe.planFaults(`n${i}`, ...Array.from({ length: 8 }, () => ENDPOINT_RATE));
    const headers = ['Idempotency-Key', `n${i}`];
    const path = '/v1/nobody/knows/so/deep/a/path/as/this';
    const { status } = await send('POST', path, { intent: `n${i}`, headers, body: 'a=1' });
    expect(status).toBe(429);
  }
  expect(await cuts()).toBe(0);
  expect(await tidegate.metric('tidegate_ratelimit_rate_requests_per_second{upstream="api",scope="upstream"}')).toBe(
    100,
  );
  expect((await send('POST', '/v1/charges', { intent: 'other', body: 'a=1' })).status).toBe(200);
});

test('retries a lock on an object, and does not cut the rate', async () => {
  const stripe = await startStripe();
  const { send, throttled, cuts, tidegate } = await startProviderProxy('stripe', stripe);
  for (let i = 0; i < 6; i += 1) {
    stripe.planFaults(`i${i}`, i % 2 === 0 ? LOCKED : ONE_OBJECT, { ...LOCKED, status: 409 });
    const headers = ['Idempotency-Key', `k${i}`];
    const answer = await send('POST', '/v1/payment_intents/pi_1/confirm', { intent: `i${i}`, headers, body: 'a=1' });
    expect([answer.status, answer.header('tidegate-attempts')]).toEqual([200, '3']);
  }
  expect(Object.fromEntries(stripe.charges)).toEqual(Object.fromEntries([0, 1, 2, 3, 4, 5].map((i) => [`i${i}`, 1])));
  expect([await throttled('.*'), await cuts()]).toEqual([0, 0]);
  expect(await tidegate.metric('tidegate_retries_total{upstream="api",reason="lock"}')).toBe(12);
});

test('makes a charge once, whatever happens to its responses, and obeys Stripe-Should-Retry', async () => {
  const stripe = await startStripe();
  const { send } = await startProviderProxy('stripe', stripe);
  const charge = (intent: string, ...headers: string[]) =>
    send('POST', '/v1/charges', { intent, headers, body: 'amount=1' });

  stripe.planFaults('broken', 'reset-after');
  expect((await charge('broken', 'Idempotency-Key', 'a')).status).toBe(200);
  stripe.planFaults('down', { status: 503 }, 'reset-after');
  expect((await charge('down', 'Idempotency-Key', 'b')).status).toBe(200);
  // Stored with its key: a repeat gets the same response.
  stripe.planFaults('failed', '500-after');
  const failed = await charge('failed', 'Idempotency-Key', 'c');
  expect([failed.status, failed.header('tidegate-outcome'), failed.header('tidegate-attempts')]).toEqual([
    500,
    'unknown',
    '1',
  ]);
  stripe.planFaults('told', { status: 500, headers: { 'Stripe-Should-Retry': 'false' } });
  const forbidden = await charge('told', 'Idempotency-Key', 'd');
  expect([forbidden.status, forbidden.header('tidegate-attempts')]).toEqual([500, '1']);
  stripe.planFaults('unkeyed', 'reset-after');
  expect((await charge('unkeyed')).status).toBe(504);
  expect(Object.fromEntries(stripe.charges)).toEqual({ broken: 1, down: 1, failed: 1, unkeyed: 1 });
});
