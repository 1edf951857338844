import { expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startSquare } from '../../support/providers/square.ts';

test('waits for the X-RateLimit-Reset of RATE_LIMITED', async () => {
  const square = await startSquare({ limit: 2 });
  const { send, throttled } = await startProviderProxy('square', square);
  // The third of a window is refused. A slow machine sends fewer in some windows.
  do expect((await send('GET', '/v2/payments')).status).toBe(200);
  while (square.refused() === 0);
  // Once: it sent a reset time, and the proxy waited for it.
  expect(square.refused()).toBe(1);
  expect(await throttled('RATE_LIMITED')).toBe(1);
});

test('does not repeat a payment with a key in a header, which protects nothing', async () => {
  const square = await startSquare();
  const { send } = await startProviderProxy('square', square);
  square.planFaults('header', 'reset-after');
  const answer = await send('POST', '/v2/payments', {
    intent: 'header',
    headers: ['Idempotency-Key', 'a', 'Content-Type', 'application/json'],
    body: '{"amount":1}',
  });
  expect([answer.status, answer.header('tidegate-outcome')]).toEqual([504, 'unknown']);
  expect(Object.fromEntries(square.charges)).toEqual({ header: 1 });
});

test('repeats a payment with a key in its body when the response is lost, and makes it once', async () => {
  const square = await startSquare();
  const { send } = await startProviderProxy('square', square);
  const pay = (intent: string) =>
    send('POST', '/v2/payments', {
      intent,
      headers: ['Content-Type', 'application/json'],
      body: JSON.stringify({ idempotency_key: intent, amount_money: { amount: 1 } }),
    });
  square.planFaults('lost', 'reset-after');
  square.planFaults('down', { status: 503 });
  const answers = [await pay('lost'), await pay('down')];
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(Object.fromEntries(square.charges)).toEqual({ lost: 1, down: 1 });
});
