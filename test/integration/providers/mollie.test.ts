import { expect, test } from 'vitest';
import { startBehind } from '../../support/providers/behind.ts';
import { startMollie } from '../../support/providers/mollie.ts';

test('a 429 is waited out by its Retry-After', async () => {
  const mollie = await startMollie({ limit: 2 });
  const { send } = await startBehind('mollie', mollie);
  const answers = [];
  for (let i = 0; i < 3; i += 1) answers.push(await send('GET', '/v2/payments'));
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
  expect(mollie.refused()).toBe(1);
});

test('a payment with a key is made once; a PATCH is never sent again, because no key protects it', async () => {
  const mollie = await startMollie();
  const { send } = await startBehind('mollie', mollie);
  const order = (method: string, intent: string) =>
    send(method, '/v2/payments', { intent, headers: ['Idempotency-Key', intent], body: '{}' });
  mollie.plan('lost', { status: 503 }, 'reset-after');
  expect((await order('POST', 'lost')).status).toBe(201);
  mollie.plan('gone', 'reset-after');
  expect((await order('DELETE', 'gone')).status).toBe(201);
  mollie.plan('patch', 'reset-after');
  const patched = await order('PATCH', 'patch');
  expect([patched.status, patched.header('tidegate-outcome')]).toEqual([504, 'unknown']);
  expect(Object.fromEntries(mollie.charges)).toEqual({ lost: 1, gone: 1, patch: 1 });
});
