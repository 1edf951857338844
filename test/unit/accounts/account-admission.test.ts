/** The gate with accounts, in virtual time. */
import { expect, test } from 'vitest';
import { openAccountGate } from '../../support/core/account-gate.ts';
import { failure, response } from '../../support/core/policy-builders.ts';

test('creates the limit of an account with its first request, and none for a client', () => {
  const { gate, arrive, answer } = openAccountGate();
  for (let i = 0; i < 3; i += 1) answer(arrive(i), i, 200);
  expect(
    gate
      .view(10)
      .limits.map(({ key, scope }) => `${scope} ${key}`)
      .toSorted((a, b) => a.localeCompare(b)),
  ).toEqual(['credential a', 'credential b']);
});

test('prefers the account with fewer requests in flight', () => {
  const { gate, arrive } = openAccountGate();
  const first = arrive(0);
  gate.onSent(first, 0);
  expect([first.account?.name, arrive(1).account?.name, arrive(2).account?.name]).toEqual(['a', 'b', 'b']);
  gate.onAttemptEnd(first, 3);
  expect(arrive(4).account?.name).toBe('a');
});

test('stops the account and not its client on a 429', () => {
  const { gate, store, arrive, answer } = openAccountGate();
  const ticket = arrive(0);
  answer(ticket, 0, 429, 60_000);
  expect(gate.retries.findOtherAccount(ticket, response(429), 0)).toEqual({ delay: 0, isCredentialRejected: false });
  expect(store.clients.heldUntil(ticket.clientSlot ?? -1)).toBeLessThanOrEqual(0);
  expect(gate.retries.reserve(ticket, { delay: 0, usesBudget: false }, 10_000, 0)).toBeUndefined();
  expect(ticket.account?.name).toBe('b');
});

test('names the shortest wait once all accounts are stopped', () => {
  const { gate, arrive, answer } = openAccountGate();
  answer(arrive(0), 0, 429, 60_000);
  const second = arrive(1);
  answer(second, 1, 429, 20_000);
  expect(gate.retries.findOtherAccount(second, response(429), 1)).toBeUndefined(); // its own account is available first
  const refused = arrive(2);
  expect(refused.admission).toMatchObject({ kind: 'refused', why: 'blocked' });
  // Its turn at the rate of that account, after the stop.
  expect(refused.admission?.kind === 'refused' && refused.admission.retryAfterMs).toBeCloseTo(20_221.2, 1);
});

test('moves the requests that wait with an account to another one when it stops', () => {
  const { gate, arrive, answer } = openAccountGate();
  // Both are limited to some rate, so that requests wait.
  for (const now of [0, 1]) answer(arrive(now), now, 429);
  const sent = arrive(500, 'a');
  gate.onSent(sent, 500);
  const waiting = Array.from({ length: 20 }, () => arrive(501)).filter(({ admission }) => admission === undefined);
  const withA = waiting.filter(({ account }) => account?.name === 'a');
  expect(withA.length).toBeGreaterThan(0);
  const pinned = arrive(502, 'a');
  gate.onOutcome(sent, response(429, { retryAfterMs: 60_000 }), 503);
  for (const ticket of withA) {
    expect(ticket.account?.name).toBe('b');
    expect(ticket.waitingLimit?.ref.key ?? 'b').toBe('b');
  }
  expect(pinned.account?.name).toBe('a');
});

test('leaves the probe of an excluded client in the queue of the account', () => {
  const { gate, arrive, answer } = openAccountGate(['a']);
  for (let i = 0; i < 3; i += 1) answer(arrive(i), i, 401);
  answer(arrive(30_100, undefined, 'two'), 30_100, 429); // the account now has a rate
  const other = arrive(30_500, undefined, 'two');
  gate.onSent(other, 30_500);
  const probe = arrive(30_501);
  expect([probe.accountUse, probe.admission]).toEqual(['probe', undefined]);
  gate.onOutcome(other, response(502), 30_502);
  expect([probe.accountUse, probe.admission]).toEqual(['probe', undefined]);
  gate.wake(31_000);
  expect(probe.admission).toEqual({ kind: 'admitted' });
});

test('excludes an account at once when another one serves the request that it was rejected for', () => {
  const { gate, arrive, answer, quarantines } = openAccountGate();
  const ticket = arrive(0);
  answer(ticket, 0, 401);
  expect(quarantines()).toEqual([]);
  expect(gate.retries.findOtherAccount(ticket, response(401), 0)).toEqual({ delay: 0, isCredentialRejected: true });
  gate.requestAdmission(ticket, 10_000, 1);
  answer(ticket, 1, 200);
  expect(quarantines()).toEqual([['a', 401]]);
  expect(Array.from({ length: 4 }, (_, i) => arrive(2 + i).account?.name)).toEqual(['b', 'b', 'b', 'b']);
});

test('does not exclude an account for one object that it may not see', () => {
  const { gate, arrive, answer, quarantines } = openAccountGate();
  const ticket = arrive(0);
  answer(ticket, 0, 403);
  gate.requestAdmission(ticket, 10_000, 1);
  answer(ticket, 1, 200);
  expect(quarantines()).toEqual([]);
  for (let i = 2; i < 5; i += 1) answer(arrive(i, 'a'), i, 403);
  expect(quarantines()).toEqual([['a', 403]]);
});

test('does not send a rejected request with the same account again', () => {
  const { gate, arrive, answer } = openAccountGate();
  const ticket = arrive(0);
  answer(ticket, 0, 401);
  gate.requestAdmission(ticket, 10_000, 1);
  answer(ticket, 1, 401);
  expect(gate.retries.findOtherAccount(ticket, response(401), 1)).toBeUndefined();
});

test('takes no failure and no throttling for a sign of the credential', () => {
  const { gate, arrive, answer, quarantines } = openAccountGate(['a']);
  for (let i = 0; i < 2; i += 1) answer(arrive(i), i, 401);
  const ticket = arrive(2);
  gate.onSent(ticket, 2);
  gate.onOutcome(ticket, failure('reset', true), 2);
  gate.onAttemptEnd(ticket, 2);
  answer(arrive(3), 3, 401);
  expect(quarantines()).toEqual([['a', 401]]);
});

test('probes an account with one request after the interval', () => {
  const { arrive, answer, events } = openAccountGate();
  for (let i = 0; i < 3; i += 1) answer(arrive(i, 'a'), i, 401);
  expect(arrive(100, 'a').admission).toMatchObject({ kind: 'refused', why: 'blocked', retryAfterMs: 29_902 });
  const probe = arrive(30_002);
  expect(probe.account?.name).toBe('a');
  expect(arrive(30_003).account?.name).toBe('b');
  answer(probe, 30_004, 200);
  expect(events.filter(({ type }) => type === 'account-returned')).toEqual([
    { type: 'account-returned', upstream: 'up', account: 'a', after: 30_002 },
  ]);
  expect(arrive(30_005).account?.name).toBe('a');
});

test('gives no account to a request that needs one that is not configured', () => {
  const { arrive } = openAccountGate();
  const ticket = arrive(0, 'removed');
  expect([ticket.account, ticket.admission?.kind]).toEqual([undefined, 'admitted']);
});

test('serves other clients with the accounts that reject one of them', () => {
  const { arrive, answer } = openAccountGate();
  for (let i = 0; i < 3; i += 1) for (const name of ['a', 'b']) answer(arrive(i, name, 'evil'), i, 403);
  expect(arrive(100, undefined, 'evil').admission).toMatchObject({ kind: 'refused', why: 'blocked' });
  const other = arrive(101, undefined, 'other');
  expect(other.admission?.kind).toBe('admitted');
  answer(other, 102, 200);
  expect(arrive(103, undefined, 'evil').account?.name).toBe(other.account?.name);
});

test('sends the request of a client that no account rejects, although all accounts reject several others', () => {
  const { arrive, answer, gate } = openAccountGate();
  for (let i = 0; i < 3; i += 1) {
    for (const name of ['a', 'b']) for (const client of ['one', 'two']) answer(arrive(i, name, client), i, 401);
  }
  expect(arrive(90, undefined, 'two').admission?.kind).toBe('refused');
  const third = arrive(100, undefined, 'third');
  expect(third.admission?.kind).toBe('admitted');
  expect(gate.decisionDetails(third, 100).account).toEqual({ name: third.account?.name, quarantinedFor: 0 });
});

test('leaves a waiting request in the queue of an account that rejects another client', () => {
  const { gate, arrive, answer, quarantines } = openAccountGate();
  for (const now of [0, 1]) answer(arrive(now), now, 429);
  const evil = arrive(500, 'a', 'evil');
  gate.onSent(evil, 500);
  const waiting = Array.from({ length: 20 }, () => arrive(501, undefined, 'other')).filter(
    ({ admission }) => admission === undefined,
  );
  const withA = waiting.filter(({ account }) => account?.name === 'a');
  expect(withA.length).toBeGreaterThan(0);
  for (let i = 0; i < 3; i += 1) gate.onOutcome(evil, response(401), 502 + i);
  expect(quarantines()).toEqual([['a', 401]]);
  for (const ticket of withA) expect([ticket.account?.name, ticket.admission]).toEqual(['a', undefined]);
});

test('moves the waiting requests of a client from an account that another one has just proven invalid for it', () => {
  const { gate, arrive, answer, quarantines } = openAccountGate();
  for (const now of [0, 1]) answer(arrive(now), now, 429);
  const ticket = arrive(500, 'a');
  answer(ticket, 500, 401);
  ticket.pinned = undefined;
  gate.requestAdmission(ticket, 10_000, 501);
  expect([ticket.account?.name, ticket.admission?.kind]).toEqual(['b', 'admitted']);
  gate.onSent(ticket, 501);
  const waitingWithA = (client?: string) =>
    Array.from({ length: 20 }, () => arrive(502, undefined, client)).filter(
      ({ admission, account }) => admission === undefined && account?.name === 'a',
    );
  const own = waitingWithA();
  const ofOther = waitingWithA('other');
  expect([own.length > 0, ofOther.length > 0]).toEqual([true, true]);
  gate.onOutcome(ticket, response(200), 503);
  expect(quarantines()).toEqual([['a', 401]]);
  expect(own.map(({ account }) => account?.name)).toEqual(own.map(() => 'b'));
  expect(ofOther.map(({ account }) => account?.name)).toEqual(ofOther.map(() => 'a'));
});

test('chooses a stopped account again once an operator unblocks the upstream', () => {
  const { gate, store, arrive, answer } = openAccountGate();
  answer(arrive(0), 0, 429, 300_000);
  answer(arrive(1), 1, 429, 20_000);
  expect(arrive(2).account?.name).toBe('b');
  for (const limit of store.applyOverride('up', { action: 'unblock' }, 3)) gate.onTokensSupplied(limit, 3);
  const next = arrive(4);
  expect(next.account?.name).toBe('a');
  expect(next.admission?.kind).not.toBe('refused');
  expect(store.upstream('up').accounts?.accounts.map(({ stoppedUntil }) => stoppedUntil > 4)).toEqual([false, false]);
});
