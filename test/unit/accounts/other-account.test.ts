/** Whether a rejected request is retried with another account, in virtual time. */
import { expect, test } from 'vitest';
import { openAccountGate } from '../../support/core/account-gate.ts';
import { response } from '../../support/core/policy-builders.ts';

const throttled = response(429, { retryAfterMs: 1000 });

test('retries with the throttled account if the other one stops for longer', () => {
  const { gate, arrive, answer } = openAccountGate();
  answer(arrive(0, 'b'), 0, 429, 240_000);
  const ticket = arrive(1);
  answer(ticket, 1, 429, 1000);
  expect(gate.retries.findOtherAccount(ticket, throttled, 1)).toBeUndefined();
  expect(gate.retries.reserve(ticket, { delay: 1000, usesBudget: false }, 10_000, 1)).toBeUndefined();
  expect(ticket.account?.name).toBe('a');
});

test('retries with the throttled account if the other one excludes the client for longer', () => {
  const { gate, arrive, answer } = openAccountGate();
  for (let i = 0; i < 3; i += 1) answer(arrive(i, 'b'), i, 401);
  const ticket = arrive(25_000);
  answer(ticket, 25_000, 429, 1000);
  expect(gate.retries.findOtherAccount(ticket, throttled, 25_000)).toBeUndefined();
  expect(gate.retries.reserve(ticket, { delay: 1000, usesBudget: false }, 35_000, 25_000)).toBeUndefined();
  expect(ticket.account?.name).toBe('a');
});

test('waits for the other account if the throttled one stops for longer', () => {
  const { gate, arrive, answer } = openAccountGate();
  answer(arrive(0, 'b'), 0, 429, 20_000);
  const ticket = arrive(1);
  answer(ticket, 1, 429, 60_000);
  const other = gate.retries.findOtherAccount(ticket, response(429, { retryAfterMs: 60_000 }), 1);
  expect(other?.delay).toBe(19_999);
});

test('does not delay a rejected credential until the probe of another account', () => {
  const { gate, arrive, answer } = openAccountGate();
  for (let i = 0; i < 3; i += 1) answer(arrive(i, 'b'), i, 401);
  const ticket = arrive(25_000);
  answer(ticket, 25_000, 401);
  expect(gate.retries.findOtherAccount(ticket, response(401), 25_000)).toBeUndefined();
});

test('retries a rejected credential with another account whose probe is due', () => {
  const { gate, arrive, answer } = openAccountGate();
  for (let i = 0; i < 3; i += 1) answer(arrive(i, 'b'), i, 401);
  const ticket = arrive(29_000);
  answer(ticket, 30_002, 401);
  expect(ticket.sentWith).toBe('a');
  const expected = { delay: 0, isCredentialRejected: true };
  expect(gate.retries.findOtherAccount(ticket, response(401), 30_002)).toEqual(expected);
});
