/** Observe mode with accounts: tickets stay in the queues, although their requests are sent. */
import { expect, test } from 'vitest';
import { openAccountGate } from '../../support/core/account-gate.ts';
import { response } from '../../support/core/policy-builders.ts';

/** A gate in observe mode, and requests that it has sent with account `a`, although they wait in its queue. */
function openObserving() {
  const opened = openAccountGate();
  const { gate, arrive, answer } = opened;
  for (const now of [0, 1]) answer(arrive(now), now, 429);
  const queued = Array.from({ length: 20 }, () => arrive(500, undefined, undefined, 'observe')).filter(
    ({ flow, account }) => flow !== undefined && account?.name === 'a',
  );
  expect(queued.length).toBeGreaterThan(2);
  for (const ticket of queued) gate.onSent(ticket, 500);
  return { ...opened, queued };
}

test('leaves a request that was sent in observe mode with its account', () => {
  const { gate, queued, quarantines } = openObserving();
  for (const ticket of queued.slice(0, 3)) gate.onOutcome(ticket, response(401), 501);
  expect(quarantines()).toEqual([['a', 401]]);
  expect(queued.map(({ account }) => account?.name)).toEqual(queued.map(() => 'a'));
});

test('chooses no other account for a ticket that is still queued in observe mode', () => {
  const { gate, queued } = openObserving();
  for (const ticket of queued) {
    const { limits } = ticket;
    gate.onOutcome(ticket, response(429, { retryAfterMs: 60_000 }), 501);
    expect(ticket.flow).toBeDefined();
    expect(gate.retries.findOtherAccount(ticket, response(429), 501)).toBeUndefined();
    gate.retries.reserve(ticket, { delay: 0, usesBudget: false }, 10_000, 501);
    expect(ticket.account?.name).toBe('a');
    expect(ticket.limits).toBe(limits);
  }
});
