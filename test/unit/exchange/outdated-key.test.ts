/** A write whose connection became available so late that its key has to be looked up again. */
import { expect, test } from 'vitest';
import type { ErrorOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { exchange } from '../../../src/core/exchange/exchange.ts';
import type { ExchangeVerdict } from '../../../src/core/exchange/exchange-verdict.ts';
import type { ExchangeStep, StepResult } from '../../../src/core/exchange/steps.ts';
import type { KeyRecord } from '../../../src/core/idempotency/key-record.ts';
import { requestFacts, response, routePolicy, SEND_ONCE } from '../../support/core/policy-builders.ts';

const TTL = 1000;
const OUTDATED: ErrorOutcome = { kind: 'error', reason: 'timeout', sent: false, took: 0, isKeyOutdated: true };
const OPEN: KeyRecord = { firstSentAt: 0, isAnswered: false };

/**
 * Plays an exchange whose first sends are not made.
 * @param records found by the look-ups, in order; then nothing is recorded any more
 * @param outcomes of the sends, in order; then the upstream responds
 */
function play(records: readonly (KeyRecord | undefined)[], outcomes: readonly ErrorOutcome[], at = 5) {
  const facts = requestFacts({ method: 'POST', keyed: true, keyTtl: TTL });
  const script = exchange(facts, routePolicy({ claims: true, retry: SEND_ONCE }), () => 0, 0);
  const steps: ExchangeStep['do'][] = [];
  let [looks, sends] = [0, 0];
  const answer = (step: ExchangeStep): StepResult => {
    steps.push(step.do);
    switch (step.do) {
      case 'body':
        return { kind: 'body', replayable: true, at: 0 };
      case 'claim':
        return { kind: 'claimed', at: 0 };
      case 'admit':
        return { kind: 'admitted', at: 0 };
      case 'look':
        return { kind: 'known', record: records[looks++], at };
      case 'send':
        return { kind: 'sent', outcome: outcomes[sends++] ?? response(200), at };
      default:
        throw new Error(`an unexpected step: ${step.do}`);
    }
  };
  let iteration = script.next();
  while (iteration.done !== true) iteration = script.next(answer(iteration.value));
  const verdict: ExchangeVerdict = iteration.value;
  return { steps: steps.join(' '), verdict };
}

test('is looked up and sent again, although no retry is allowed', () => {
  const { steps, verdict } = play([], [OUTDATED]);
  expect(steps).toBe('body claim admit look send admit look send');
  expect(verdict).toEqual({ kind: 'forward', unknown: false, attempts: 2, retryOutcome: undefined });
});

test('is refused if another request has the key by then', () => {
  const { steps, verdict } = play([undefined, { ...OPEN, isInUse: true }], [OUTDATED]);
  expect(steps).toBe('body claim admit look send admit look');
  expect(verdict).toMatchObject({ kind: 'refuse', why: 'key_in_use', attempts: 1 });
});

test('is refused as unknown if the store does not say whether another request has the key', () => {
  const { steps, verdict } = play([undefined, { ...OPEN, isInDoubt: true }], [OUTDATED]);
  expect(steps).toBe('body claim admit look send admit look');
  expect(verdict).toEqual({ kind: 'unknown', reason: 'key_store_lost', attempts: 1, retryOutcome: undefined });
});

test('is not sent if another request sent it so early that the upstream has forgotten the key', () => {
  const answered = { firstSentAt: 0, isAnswered: true };
  const { steps, verdict } = play([undefined, answered, answered], [OUTDATED], TTL + 1);
  expect(steps).toBe('body claim admit look send admit look look');
  expect(verdict).toMatchObject({ kind: 'refuse', why: 'key_expired', attempts: 1 });
});

test('is given up as not sent if that happens again and again', () => {
  const { steps, verdict } = play(
    [],
    Array.from({ length: 9 }, () => OUTDATED),
  );
  expect(steps.split(' ').filter((step) => step === 'send')).toHaveLength(4);
  expect(verdict).toMatchObject({ kind: 'fail', reason: 'timeout' });
});

test('is given up as not sent if a part of its streamed body is gone', () => {
  const { steps, verdict } = play([], [{ ...OUTDATED, bodyConsumed: true }]);
  expect(steps).toBe('body claim admit look send look');
  expect(verdict).toMatchObject({ kind: 'fail', reason: 'timeout', attempts: 1 });
});
