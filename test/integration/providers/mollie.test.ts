import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startMollie } from '../../support/providers/mollie.ts';

test('waits for the Retry-After of a 429', async () => {
  const mollie = await startMollie({ limit: 2 });
  const { send } = await startProviderProxy('mollie', mollie);
  const answers = [];
  for (let i = 0; i < 3; i += 1) answers.push(await send('GET', '/v2/payments'));
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
  expect(mollie.refused()).toBe(1);
});

test('makes a keyed payment once, and never retries a PATCH, which no key protects', async () => {
  const mollie = await startMollie();
  const { send } = await startProviderProxy('mollie', mollie);
  const order = (method: string, intent: string) =>
    send(method, '/v2/payments', { intent, headers: ['Idempotency-Key', intent], body: '{}' });
  mollie.planFaults('lost', { status: 503 }, 'reset-after');
  expect((await order('POST', 'lost')).status).toBe(201);
  mollie.planFaults('gone', 'reset-after');
  expect((await order('DELETE', 'gone')).status).toBe(201);
  mollie.planFaults('patch', 'reset-after');
  const patched = await order('PATCH', 'patch');
  expect([patched.status, patched.header('tidegate-outcome')]).toEqual([504, 'unknown']);
  expect(Object.fromEntries(mollie.charges)).toEqual({ lost: 1, gone: 1, patch: 1 });
});
