import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';
import { startCheckout } from '../../support/providers/checkout.ts';

const SECONDS = 3;

test('paces reads and writes at 100/s each, independently', AGAIN_IF_STALLED, async () => {
  const stalls = watchStalls();
  const checkout = await startCheckout();
  const { load } = await startProviderProxy('checkout.com', checkout);
  await load(2 * 130, SECONDS, (n) =>
    n % 2 === 0 ? { method: 'GET', path: '/reads' } : { method: 'POST', path: '/writes', body: '{}' },
  );
  stalls.unlessStalled(() => {
    for (const path of ['/reads', '/writes']) {
      expect(checkout.accepted.get(path)).toBeGreaterThan(0.7 * 100 * SECONDS);
    }
  });
  expect(checkout.refused() / checkout.arrivals.length).toBeLessThan(0.05);
});

test('makes a payment once: does not retry after a 500, which stores no result', async () => {
  const checkout = await startCheckout();
  const { send } = await startProviderProxy('checkout.com', checkout);
  const pay = (intent: string) =>
    send('POST', '/payments', { intent, headers: ['Cko-Idempotency-Key', intent], body: '{}' });
  checkout.planFaults('failed', '500-after', '500-after');
  const failed = await pay('failed');
  expect([failed.status, failed.header('tidegate-outcome'), failed.header('tidegate-attempts')]).toEqual([
    500,
    'unknown',
    '1',
  ]);
  checkout.planFaults('lost', 'reset-after');
  expect((await pay('lost')).status).toBe(201);
  checkout.planFaults('down', { status: 503 });
  expect((await pay('down')).status).toBe(201);
  expect(Object.fromEntries(checkout.charges)).toEqual({ failed: 1, lost: 1, down: 1 });
});
