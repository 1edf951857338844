/** What a response says about the account that it was sent with, in virtual time. */
import { expect, test } from 'vitest';
import { AccountCredential } from '../../../src/core/accounts/account-credential.ts';
import type { Ticket } from '../../../src/core/admission/ticket.ts';
import type { Hints } from '../../../src/core/hints/hints.ts';
import { openAccountGate } from '../../support/core/account-gate.ts';
import { response } from '../../support/core/policy-builders.ts';

function openGate(names: readonly string[] = ['a', 'b']) {
  const opened = openAccountGate(names);
  const { gate, store } = opened;
  const accounts = store.upstream('up').accounts;
  if (accounts === undefined) throw new Error('the upstream has no accounts');
  const accountNamed = (name: string) => {
    const account = accounts.find(name);
    if (account === undefined) throw new Error(`no account is named ${name}`);
    return account;
  };
  const respond = (ticket: Ticket, now: number, status: number, hints: Partial<Hints> = {}): void => {
    gate.onOutcome(ticket, response(status, hints), now);
    gate.onAttemptEnd(ticket, now);
  };
  /** Sends the request again at once. */
  const retry = (ticket: Ticket, now: number): void => {
    gate.requestAdmission(ticket, now + 10_000, now);
    gate.onSent(ticket, now);
  };
  const rotate = (name: string): void => {
    accountNamed(name).rotate(new AccountCredential('Authorization', `new value of ${name}`));
  };
  return { ...opened, respond, retry, rotate, accountNamed };
}

const CACHED: Partial<Hints> = { isFromCache: true };

test('does not stop an account for the Retry-After of a response from a cache', () => {
  const { gate, arrive, respond, accountNamed } = openGate();
  const ticket = arrive(0, 'a');
  gate.onSent(ticket, 0);
  respond(ticket, 1, 429, { ...CACHED, retryAfterMs: 60_000 });
  expect(accountNamed('a').stoppedUntil).toBe(Number.NEGATIVE_INFINITY);
  expect(arrive(2, 'a', 'other').admission?.kind).toBe('admitted');
});

test('does not end a quarantine by a response from a cache', () => {
  const { gate, arrive, answer, respond, accountNamed } = openGate();
  for (let i = 0; i < 3; i += 1) answer(arrive(i, 'a'), i, 401);
  const other = arrive(10, 'a', 'other');
  gate.onSent(other, 10);
  respond(other, 11, 200, CACHED);
  expect(accountNamed('a').isQuarantined).toBe(true);
});

test('takes no acceptance from a cache for a proof against another account', () => {
  const { arrive, answer, respond, retry, quarantines } = openGate();
  const ticket = arrive(0, 'a');
  answer(ticket, 0, 401);
  ticket.pinned = undefined;
  retry(ticket, 1);
  expect(ticket.account?.name).toBe('b');
  respond(ticket, 2, 200, CACHED);
  expect(quarantines()).toEqual([]);
});

test('avoids the account of a rejection from a cache for this request only, and counts no proof against it', () => {
  const { gate, arrive, respond, retry, quarantines } = openGate();
  for (let i = 0; i < 3; i += 1) {
    const ticket = arrive(10 * i, 'a');
    gate.onSent(ticket, 10 * i);
    respond(ticket, 10 * i + 1, 401, CACHED);
    ticket.pinned = undefined;
    retry(ticket, 10 * i + 2);
    expect(ticket.account?.name).toBe('b');
    respond(ticket, 10 * i + 3, 200);
  }
  expect(quarantines()).toEqual([]);
});

test('does not count rejections of a credential that was replaced after the requests were sent', () => {
  const { gate, arrive, respond, rotate, quarantines } = openGate(['a']);
  const sent = [0, 1, 2].map((now) => arrive(now));
  for (const ticket of sent) gate.onSent(ticket, 3);
  rotate('a');
  for (const ticket of sent) respond(ticket, 4, 401);
  expect(quarantines()).toEqual([]);
  expect(arrive(5).admission?.kind).toBe('admitted');
});

test('takes no acceptance with another account for a proof against a credential that was replaced meanwhile', () => {
  const { arrive, answer, respond, retry, rotate, quarantines } = openGate();
  const ticket = arrive(0, 'a');
  answer(ticket, 0, 401);
  ticket.pinned = undefined;
  retry(ticket, 1);
  expect(ticket.account?.name).toBe('b');
  rotate('a');
  respond(ticket, 2, 200);
  expect(quarantines()).toEqual([]);
});

test('does not clear the rejections of a new credential when the old one is accepted', () => {
  const { gate, arrive, answer, respond, rotate, quarantines } = openGate(['a']);
  const old = arrive(0);
  gate.onSent(old, 0);
  rotate('a');
  for (const now of [1, 2]) answer(arrive(now), now, 401);
  respond(old, 3, 200);
  answer(arrive(4), 4, 401);
  expect(quarantines()).toEqual([['a', 401]]);
});

test('sends a rejected request with the same account again once its credential was replaced', () => {
  const { arrive, answer, retry, rotate } = openGate(['a', 'b', 'c']);
  const ticket = arrive(0);
  for (const now of [0, 1]) {
    answer(ticket, now, 401);
    retry(ticket, now);
  }
  answer(ticket, 2, 401);
  rotate('b');
  retry(ticket, 3);
  expect(ticket.account?.name).toBe('b');
});

test('rejections of an account that a reload has removed meanwhile quarantine nothing, because nothing would end that', () => {
  const { gate, arrive, quarantines, keepAccounts } = openAccountGate(['a', 'b']);
  const sent = [0, 1, 2].map((now) => {
    const ticket = arrive(now, 'a');
    gate.onSent(ticket, now);
    return ticket;
  });
  keepAccounts(['b']);
  for (const ticket of sent) gate.onOutcome(ticket, response(401), 10);
  expect(quarantines()).toEqual([]);
});
