import { describe, expect, test } from 'vitest';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { WriteHistory } from '../../../src/core/idempotency/write-history.ts';
import type { RetryPolicy } from '../../../src/core/retry/retry-policy.ts';
import { failure, requestFacts, response, retryPolicy } from '../../support/core/policy-builders.ts';

const KEYED = requestFacts({ method: 'POST', keyed: true, keyTtl: 1000 });

/** The history of a keyed write after these attempts, sent at 100, 200, … */
function after(outcomes: readonly AttemptOutcome[], policy: Partial<RetryPolicy> = {}): WriteHistory {
  const history = new WriteHistory(retryPolicy(policy));
  for (const [i, outcome] of outcomes.entries()) history.onOutcome(KEYED, outcome, 100 * (i + 1));
  return history;
}

describe('a write of this exchange', () => {
  test('is unresolved after a broken connection, until a response or a final response elsewhere', () => {
    const broken = failure('reset', true);
    expect([after([]).isOwnUnresolved, after([broken]).isOwnUnresolved]).toEqual([false, true]);
    expect(after([broken, response(503)]).isOwnUnresolved).toBe(true);
    expect(after([broken, response(402)]).isOwnUnresolved).toBe(false);
    const history = after([broken]);
    history.setEarlierRecord({ firstSentAt: 1, isAnswered: true });
    expect(history.mayHaveTakenEffect).toBe(true);
    history.setEarlierRecord({ firstSentAt: 1, isAnswered: true, isFinal: true });
    expect(history.mayHaveTakenEffect).toBe(false);
    expect(history.wasAnswered).toBe(true);
  });

  test.each<[string, AttemptOutcome, boolean]>([
    ['a conflict: its key is in progress there', response(409), true],
    ['a locked object', response(429, { lock: true }), true],
    ['a decline', response(402), true],
    ['a broken connection', failure('reset', true), true],
    ['a rejection', response(400), false],
    ['throttling', response(429), false],
    ['a refused connection', failure('connect', false), false],
  ])('is sent again to its endpoint alone or not, after %s', (_, outcome, isPinned) => {
    expect(after([outcome]).isPinnedToEndpoint(KEYED)).toBe(isPinned);
    expect(after([outcome, response(400)]).isPinnedToEndpoint(KEYED)).toBe(isPinned);
    expect(after([outcome], { sharesKeys: true }).isPinnedToEndpoint(KEYED)).toBe(false);
    expect(after([outcome]).isPinnedToEndpoint({ ...KEYED, keyed: false })).toBe(false);
  });

  test('has the age of its first send, here or in another exchange', () => {
    expect(after([failure('connect', false)]).keyAge(500)).toBeUndefined();
    expect([after([]).keyAge(500), after([]).keyValidUntil(KEYED)]).toEqual([undefined, Number.POSITIVE_INFINITY]);
    const history = after([failure('reset', true), response(503)]);
    expect([history.keyAge(500), history.keyValidUntil(KEYED)]).toEqual([400, 1100]);
    history.setEarlierRecord({ firstSentAt: 150, isAnswered: false });
    expect(history.keyAge(500)).toBe(400);
    history.setEarlierRecord({ firstSentAt: 50, isAnswered: false });
    history.setEarlierRecord(undefined);
    expect([history.keyAge(500), history.keyValidUntil(KEYED)]).toEqual([450, 1050]);
    expect(history.keyValidUntil({ ...KEYED, method: 'PUT' })).toBe(Number.POSITIVE_INFINITY);
    expect(history.keyValidUntil({ ...KEYED, keyTtl: undefined })).toBe(Number.POSITIVE_INFINITY);
  });

  test('has an age from its first attempt on if others may send it at the same time', () => {
    expect(after([]).keyValidUntil(KEYED, 300)).toBe(Number.POSITIVE_INFINITY);
    const concurrent = { concurrentWrites: true };
    expect(after([], concurrent).keyValidUntil(KEYED, 300)).toBe(1300);
    expect(after([failure('reset', true)], concurrent).keyValidUntil(KEYED, 300)).toBe(1100);
    expect(after([], concurrent).keyValidUntil({ ...KEYED, method: 'PUT' }, 300)).toBe(Number.POSITIVE_INFINITY);
  });
});
