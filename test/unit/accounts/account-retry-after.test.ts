/** The Retry-After of a 429 that is forwarded to the client, where it concerns one account of its upstream. */
import { expect, test } from 'vitest';
import type { Ticket } from '../../../src/core/admission/ticket.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../../src/core/exchange/exchange-verdict.ts';
import { addGateRetryAfter } from '../../../src/core/exchange/verdict-retry-after.ts';
import type { Hints } from '../../../src/core/hints/hints.ts';
import { openAccountGate } from '../../support/core/account-gate.ts';
import { response } from '../../support/core/policy-builders.ts';

const FORWARDED: ExchangeVerdict = { kind: 'forward', unknown: false, attempts: 1, retryOutcome: 'attempts_exhausted' };

/** A response that has a Retry-After, which suffices if no `impliedWait` is given. */
function throttled(hints: Partial<Hints>, impliedWait?: number): AttemptOutcome {
  return { ...response(429, hints), ...(impliedWait === undefined ? {} : { impliedWait }) };
}

/** Records the outcome of a request, and returns the Retry-After that the gate adds. */
function retryAfterOf({ gate }: ReturnType<typeof openAccountGate>, ticket: Ticket, outcome: AttemptOutcome, now = 0) {
  gate.onSent(ticket, now);
  gate.onOutcome(ticket, outcome, now);
  gate.onAttemptEnd(ticket, now);
  const verdict = addGateRetryAfter(FORWARDED, outcome, gate, ticket, now);
  return verdict.kind === 'forward' ? verdict.retryAfterMs : undefined;
}

test("keeps the upstream's Retry-After if the throttled account is the only one", () => {
  const opened = openAccountGate(['a']);
  expect(retryAfterOf(opened, opened.arrive(0), throttled({ retryAfterMs: 300_000 }))).toBeUndefined();
});

test("keeps the upstream's Retry-After of a write that keeps its account", () => {
  const opened = openAccountGate();
  expect(retryAfterOf(opened, opened.arrive(0, 'a'), throttled({ retryAfterMs: 300_000 }))).toBeUndefined();
});

test("keeps the upstream's Retry-After if the 429 names a limit that is not known", () => {
  const opened = openAccountGate(['a']);
  const outcome = throttled({ retryAfterMs: 300_000, limit: 'reports' });
  expect(retryAfterOf(opened, opened.arrive(0), outcome)).toBeUndefined();
});

test('adds the wait that the upstream asks for without a Retry-After, if the throttled account is the only one', () => {
  const opened = openAccountGate(['a']);
  expect(retryAfterOf(opened, opened.arrive(0), throttled({}, 3_600_000))).toBe(3_600_000);
});

test('names the wait for another account that is available sooner', () => {
  const opened = openAccountGate();
  expect(retryAfterOf(opened, opened.arrive(0), throttled({ retryAfterMs: 300_000 }))).toBeLessThanOrEqual(2000);
});

test('names the end of the stop of another account, although its shared limit does not show it yet', () => {
  const opened = openAccountGate();
  const other = opened.store.upstream('up').accounts?.find('b');
  if (other !== undefined) other.stoppedUntil = 100_000;
  const ticket = opened.arrive(0);
  expect(retryAfterOf(opened, ticket, throttled({ retryAfterMs: 300_000 }))).toBe(100_000);
  expect(ticket.account).toBe(other);
});

test('names the next probe if all accounts exclude the client', () => {
  const opened = openAccountGate();
  for (let i = 0; i < 3; i += 1) opened.answer(opened.arrive(i, 'a'), i, 401);
  for (let i = 0; i < 3; i += 1) opened.answer(opened.arrive(10_000 + i, 'b'), 10_000 + i, 401);
  const probe = opened.arrive(30_002, 'a');
  expect(probe.admission?.kind).toBe('admitted');
  probe.pinned = undefined;
  expect(retryAfterOf(opened, probe, throttled({ retryAfterMs: 300_000 }), 30_002)).toBe(10_000); // b: from 40 002 on
});
