import { expect, test } from 'vitest';
import { startBehind } from '../../support/providers/behind.ts';
import { startPayPal } from '../../support/providers/paypal.ts';

const order = (intent: string, id = intent) => ({ intent, headers: ['PayPal-Request-Id', id], body: '{}' });

test('RATE_LIMIT_REACHED is waited out by its Retry-After, and told by its name', async () => {
  const paypal = await startPayPal({ limit: 3 });
  const { send, throttled } = await startBehind('paypal', paypal);
  const answers = [];
  // A window may end between two of them: then its limit is met in the next.
  for (let i = 0; i < 20 && paypal.refused() === 0; i += 1) {
    answers.push(await send('POST', '/v2/checkout/orders', order(`i${i}`)));
  }
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  expect(paypal.refused()).toBeGreaterThan(0);
  expect(await throttled('RATE_LIMIT_REACHED')).toBe(paypal.refused());
  expect(new Set(paypal.charges.values())).toEqual(new Set([1]));
});

test('what may still be at work is not asked for again, because the same id at the same time fails', async () => {
  const paypal = await startPayPal();
  const { send } = await startBehind('paypal', paypal);
  paypal.plan('hangs', 'hang-after');
  const hung = await send('POST', '/v2/checkout/orders', order('hangs'));
  expect([hung.status, hung.header('tidegate-attempts'), hung.header('tidegate-outcome')]).toEqual([
    504,
    '1',
    'unknown',
  ]);
  paypal.plan('lost', 'reset-after');
  const lost = await send('POST', '/v2/checkout/orders', order('lost'));
  expect([lost.status, lost.header('tidegate-attempts')]).toEqual([504, '1']);
  // Asked again by its client, later, the id finds what was done.
  expect((await send('POST', '/v2/checkout/orders', order('lost'))).status).toBe(201);
  paypal.plan('down', { status: 503 }, { status: 503 });
  expect((await send('POST', '/v2/checkout/orders', order('down'))).status).toBe(201);
  expect(Object.fromEntries(paypal.charges)).toEqual({ hangs: 1, lost: 1, down: 1 });
});

test('two requests with one id go one after the other: the second finds what the first has done', async () => {
  const paypal = await startPayPal();
  const { send } = await startBehind('paypal', paypal);
  const answers = await Promise.all([
    send('POST', '/v2/checkout/orders', order('twice')),
    send('POST', '/v2/checkout/orders', order('twice')),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([201, 201]);
  expect(Object.fromEntries(paypal.charges)).toEqual({ twice: 1 });
});
