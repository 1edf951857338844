import { expect, test } from 'vitest';
import { startBehind } from '../../support/providers/behind.ts';
import { startSquare } from '../../support/providers/square.ts';

test('RATE_LIMITED is waited out by X-RateLimit-Reset', async () => {
  const square = await startSquare({ limit: 2 });
  const { send, throttled } = await startBehind('square', square);
  const answers = [];
  for (let i = 0; i < 3; i += 1) answers.push(await send('GET', '/v2/payments'));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  // Once: it said when, and that was waited for.
  expect(square.refused()).toBe(1);
  expect(await throttled('RATE_LIMITED')).toBe(1);
});

test('a key in a header protects nothing: such a payment is not made again', async () => {
  const square = await startSquare();
  const { send } = await startBehind('square', square);
  square.plan('header', 'reset-after');
  const answer = await send('POST', '/v2/payments', {
    intent: 'header',
    headers: ['Idempotency-Key', 'a', 'Content-Type', 'application/json'],
    body: '{"amount":1}',
  });
  expect([answer.status, answer.header('tidegate-outcome')]).toEqual([504, 'unknown']);
  expect(Object.fromEntries(square.charges)).toEqual({ header: 1 });
});

test('a key in the body does: a payment whose answer is lost is asked for again, and made once', async () => {
  const square = await startSquare();
  const { send } = await startBehind('square', square);
  const pay = (intent: string) =>
    send('POST', '/v2/payments', {
      intent,
      headers: ['Content-Type', 'application/json'],
      body: JSON.stringify({ idempotency_key: intent, amount_money: { amount: 1 } }),
    });
  square.plan('lost', 'reset-after');
  square.plan('down', { status: 503 });
  const answers = [await pay('lost'), await pay('down')];
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(Object.fromEntries(square.charges)).toEqual({ lost: 1, down: 1 });
});
