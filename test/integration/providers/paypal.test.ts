import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startPayPal } from '../../support/providers/paypal.ts';

const order = (intent: string, id = intent) => ({ intent, headers: ['PayPal-Request-Id', id], body: '{}' });

test('waits for the Retry-After of RATE_LIMIT_REACHED, and recognizes it by name', async () => {
  const paypal = await startPayPal({ limit: 3 });
  const { send, throttled } = await startProviderProxy('paypal', paypal);
  const answers = [];
  // A window may end between two requests: then the limit is hit in the next.
  for (let i = 0; i < 20 && paypal.refused() === 0; i += 1) {
    answers.push(await send('POST', '/v2/checkout/orders', order(`i${i}`)));
  }
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  expect(paypal.refused()).toBeGreaterThan(0);
  expect(await throttled('RATE_LIMIT_REACHED')).toBe(paypal.refused());
  expect(new Set(paypal.charges.values())).toEqual(new Set([1]));
});

test('does not retry what may still be in progress, as a concurrent use of its id fails', async () => {
  const paypal = await startPayPal();
  const { send } = await startProviderProxy('paypal', paypal);
  paypal.planFaults('hangs', 'hang-after');
  const hung = await send('POST', '/v2/checkout/orders', order('hangs'));
  expect([hung.status, hung.header('tidegate-attempts'), hung.header('tidegate-outcome')]).toEqual([
    504,
    '1',
    'unknown',
  ]);
  paypal.planFaults('lost', 'reset-after');
  const lost = await send('POST', '/v2/checkout/orders', order('lost'));
  expect([lost.status, lost.header('tidegate-attempts')]).toEqual([504, '1']);
  // A later repeat by the client finds the result of its id.
  expect((await send('POST', '/v2/checkout/orders', order('lost'))).status).toBe(201);
  paypal.planFaults('down', { status: 503 }, { status: 503 });
  expect((await send('POST', '/v2/checkout/orders', order('down'))).status).toBe(201);
  expect(Object.fromEntries(paypal.charges)).toEqual({ hangs: 1, lost: 1, down: 1 });
});

test('sends two requests with one id in sequence, so that the second gets the first’s result', async () => {
  const paypal = await startPayPal();
  const { send } = await startProviderProxy('paypal', paypal);
  const answers = await Promise.all([
    send('POST', '/v2/checkout/orders', order('twice')),
    send('POST', '/v2/checkout/orders', order('twice')),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([201, 201]);
  expect(Object.fromEntries(paypal.charges)).toEqual({ twice: 1 });
});
