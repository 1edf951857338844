/** A configured quota is of the upstream: it counts the requests of all its accounts. */
import { expect, test } from 'vitest';
import type { CalendarQuotaSettings } from '../../../src/core/quota/calendar/calendar-quota.ts';
import { openAccountGate } from '../../support/core/account-gate.ts';
import { response } from '../../support/core/policy-builders.ts';
import { HOUR, quotaSettings, UTC_HOUR } from '../../support/core/quota-builders.ts';

const hourly = (settings: Partial<CalendarQuotaSettings>): CalendarQuotaSettings =>
  quotaSettings({ name: 'hour', period: UTC_HOUR, ...settings });

const openGate = (settings: Partial<CalendarQuotaSettings>) =>
  openAccountGate(['a', 'b'], { quotas: [hourly(settings)] });

test('refuses requests with each account once the quota of the upstream is used up', () => {
  const { gate, arrive, answer } = openGate({ limit: 3 });
  const served = [0, 1, 2].map((now) => {
    const ticket = arrive(now);
    answer(ticket, now, 200);
    return ticket.account?.name;
  });
  expect(served).toEqual(['a', 'b', 'a']);
  for (const pinned of [undefined, 'a', 'b']) {
    expect(arrive(1000, pinned).admission).toEqual({
      kind: 'refused',
      why: 'quota_exceeded',
      retryAfterMs: HOUR - 1000,
    });
  }
  const { quotas, accounts } = gate.view(1000);
  expect(quotas).toMatchObject([{ name: 'hour', remaining: 0 }]);
  expect(accounts).toMatchObject([{ account: 'a' }, { account: 'b' }]);
});

test('makes no retry with another account that the quota has no room for', () => {
  const { gate, arrive, answer } = openGate({ limit: 1 });
  const ticket = arrive(0);
  answer(ticket, 0, 429, 60_000);
  expect(gate.retries.findOtherAccount(ticket, response(429), 0)).toMatchObject({ delay: HOUR });
  expect(gate.retries.reserve(ticket, { delay: 0, usesBudget: false }, 10_000, 0)).toBe('deadline');
});

test('names the reset while the quota is used up for longer than an account is quarantined, and begins no probe', () => {
  const { arrive, answer, events } = openGate({ limit: 6 });
  for (let now = 0; now < 6; now += 1) answer(arrive(now), now, 401);
  const refused = { kind: 'refused', why: 'quota_exceeded' };
  expect(arrive(100).admission).toEqual({ ...refused, retryAfterMs: HOUR });
  expect(arrive(40_000).admission).toEqual({ ...refused, retryAfterMs: HOUR - 40_000 });
  const probe = arrive(HOUR);
  expect(probe.admission).toEqual({ kind: 'admitted' });
  answer(probe, HOUR, 200);
  expect(events).toContainEqual(expect.objectContaining({ type: 'account-returned', account: probe.account?.name }));
});

test('refuses as blocked while the quarantine lasts longer than the quota is used up', () => {
  const { arrive, answer } = openGate({ limit: 6 });
  for (let i = 0; i < 6; i += 1) answer(arrive(HOUR - 10 + i), HOUR - 10 + i, 401);
  expect(arrive(HOUR - 1).admission).toMatchObject({ why: 'blocked' });
});

test('spaces the requests that wait with different accounts by one even pace', () => {
  const { gate, arrive } = openGate({ limit: 7300, pace: 'even' });
  const admitted: number[] = [];
  const tickets = [0, 1, 2].map((now) => {
    const ticket = arrive(now);
    if (ticket.admission !== undefined) gate.onSent(ticket, now);
    return ticket;
  });
  expect(tickets.map(({ account }) => account?.name)).toEqual(['a', 'b', 'a']);
  for (let now = gate.nextWake(); now !== undefined; now = gate.nextWake()) {
    gate.wake(now);
    for (const ticket of tickets) {
      if (ticket.admission?.kind !== 'admitted' || ticket.reservedLimits.length === 0) continue;
      gate.onSent(ticket, now);
      admitted.push(Math.round(now / 10));
    }
  }
  expect(admitted).toEqual([49, 99]);
});

test('counts a request once that moves to another account', () => {
  const { gate, arrive, answer } = openGate({ limit: 1000 });
  for (const now of [0, 1]) answer(arrive(now), now, 429);
  const sent = arrive(500, 'a');
  gate.onSent(sent, 500);
  const waiting = Array.from({ length: 20 }, () => arrive(501));
  const before = gate.view(502).quotas?.[0]?.remaining ?? 0;
  gate.onOutcome(sent, response(429, { retryAfterMs: 60_000 }), 503);
  const moved = waiting.filter(({ admission }) => admission?.kind === 'admitted');
  for (const ticket of moved) gate.onSent(ticket, 504);
  expect(gate.view(505).quotas?.[0]?.remaining).toBe(before - moved.length);
});

test('in observe mode, sends a request beyond the quota of its client with an account', () => {
  const perClient = [quotaSettings({ name: 'class:partners/client/hour', period: UTC_HOUR, limit: 1 })];
  const classQuotas = [{ className: 'partners', shared: [], perClient }];
  const { gate, arrive } = openAccountGate(['a', 'b'], { classQuotas });
  const tickets = [0, 1].map((now) => {
    const ticket = arrive(now, undefined, undefined, 'observe', 'partners');
    gate.onSent(ticket, now);
    return ticket;
  });
  expect(tickets.map(({ admission }) => admission)).toMatchObject([
    { kind: 'admitted', wouldHave: { decision: 'passed' } },
    { kind: 'admitted', wouldHave: { decision: 'refused', why: 'client_quota_exceeded' } },
  ]);
  expect(tickets.map(({ account, limits }) => [account?.name, limits.length])).toEqual([
    ['a', 1],
    ['b', 1],
  ]);
});
