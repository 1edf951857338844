import { describe, expect, test } from 'vitest';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { WriteOutcome } from '../../../src/core/idempotency/write-outcome.ts';
import { classifyWrite, isFinalAnswer } from '../../../src/core/idempotency/write-outcome.ts';
import { failure, response } from '../../support/core/policy-builders.ts';

const KEYED_POST = { method: 'POST', keyed: true };
const replayed = (status: number): AttemptOutcome => ({ ...response(status), isReplayed: true }) as AttemptOutcome;
const unknown = (status: number): AttemptOutcome => ({ ...response(status), isUnknown: true }) as AttemptOutcome;

describe('the meaning of an outcome for its write', () => {
  test.each<[string, AttemptOutcome, WriteOutcome]>([
    ['200', response(200), 'answered'],
    ['299', response(299), 'answered'],
    ['402', response(402), 'answered'],
    ['a replayed 200', replayed(200), 'answered'],
    ['a replayed 500', replayed(500), 'answered'],
    ['a replayed 429', replayed(429), 'answered'],
    ['429', response(429), 'not_processed'],
    ['a throttled 200', response(200, { throttled: true }), 'not_processed'],
    ['501', response(501), 'not_processed'],
    ['503', response(503), 'not_processed'],
    ['505', response(505), 'not_processed'],
    ['529', response(529), 'not_processed'],
    ['300', response(300), 'rejected'],
    ['401', response(401), 'rejected'],
    ['403', response(403), 'rejected'],
    ['499', response(499), 'rejected'],
    ['a 429 about a locked object', response(429, { lock: true }), 'rejected'],
    ['a 200 about a locked object', response(200, { lock: true }), 'rejected'],
    ['a 503 about a locked object', response(503, { lock: true }), 'rejected'],
    ['500', response(500), 'may_have_taken_effect'],
    ['502', response(502), 'may_have_taken_effect'],
    ['504', response(504), 'may_have_taken_effect'],
    ['a 503 that another proxy marks as unknown', unknown(503), 'may_have_taken_effect'],
    ['a 409 that another proxy marks as unknown', unknown(409), 'may_have_taken_effect'],
    ['a broken connection', failure('reset', true), 'may_have_taken_effect'],
    ['a refused connection', failure('connect', false), 'nothing_sent'],
  ])('depends on the outcome: %s', (_, outcome, meaning) => {
    expect(classifyWrite(KEYED_POST, outcome)).toBe(meaning);
  });

  test.each([
    ['POST', true, 'answered'],
    ['PATCH', true, 'answered'],
    ['POST', false, 'rejected'],
    ['PUT', true, 'rejected'],
    ['DELETE', false, 'rejected'],
  ] as const)(
    'depends on whether the key names the write: a 402 to a %s, with a key %s: %s',
    (method, keyed, meaning) => {
      expect(classifyWrite({ method, keyed }, response(402))).toBe(meaning);
    },
  );

  test('follows the configured statuses instead of the usual ones', () => {
    const statuses = new Set([500]);
    expect([500, 503].map((status) => classifyWrite(KEYED_POST, response(status), statuses))).toEqual([
      'not_processed',
      'may_have_taken_effect',
    ]);
  });
});

describe('a response that resolves a write permanently', () => {
  test('is a success, but no decline, which a success may follow', () => {
    expect([200, 299, 300, 402, 500].filter((status) => isFinalAnswer(response(status)))).toEqual([200, 299]);
    expect(isFinalAnswer(failure('reset', true))).toBe(false);
  });

  test('is a stored decline too, unless the write may go to an endpoint that did not store it', () => {
    expect(isFinalAnswer(replayed(402))).toBe(true);
    expect(isFinalAnswer(replayed(402), false)).toBe(true);
    expect(isFinalAnswer(replayed(402), true)).toBe(false);
    expect(isFinalAnswer(replayed(200), true)).toBe(true);
    expect(isFinalAnswer({ ...response(402), isReplayed: false } as AttemptOutcome)).toBe(false);
  });
});
