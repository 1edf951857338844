import { describe, expect, test } from 'vitest';
import { judgeWrite, mayHaveTakenEffect, type WriteAttempt } from '../../../src/http/delivery/judge-write.ts';

type Ended = Parameters<typeof judgeWrite>[0];

interface Case {
  readonly record: Partial<Ended>;
  readonly write?: Partial<WriteAttempt>;
  readonly wasUnknown?: boolean;
  readonly isWhole?: boolean;
}

function judge({ record, write = {}, wasUnknown = false, isWhole = true }: Case) {
  const ended: Ended = {
    ...{ outcome: 'forwarded', status: 200, reason: undefined, attempts: 1, retryAfterSeconds: undefined },
    ...{ detail: undefined, isTruncated: false, ...record },
  };
  return judgeWrite(
    ended,
    { meaning: undefined, isLocked: false, wasAnswered: false, ...write },
    { wasUnknown, isWhole },
  );
}

const DONE = { kind: 'acknowledged' };
const again = (reason: string, retryAfterMs?: number) => ({
  ...{ kind: 'failed', reason, retryAfterMs, isUnknown: false, isFinal: false },
});
const unknown = (reason: string) => ({ ...again(`unknown_${reason}`), isUnknown: true });

const forwarded = (status: number, meaning: WriteAttempt['meaning'], rest: Omit<Case, 'record'> = {}): Case => ({
  record: { status },
  ...rest,
  write: { meaning, ...rest.write },
});
const own = (record: Partial<Ended>, rest: Omit<Case, 'record'> = {}): Case => ({
  record: { detail: 'why', ...record },
  ...rest,
});

describe('a write that is sent later', () => {
  test.each<[string, Case]>([
    ['a 2xx', forwarded(201, 'answered')],
    ['a 2xx after an attempt that may have taken effect', forwarded(201, 'answered', { wasUnknown: true })],
    ['a 402 to a key', forwarded(402, 'answered')],
    ['a stored 500', forwarded(500, 'answered')],
    ['a response that is kept', { record: { outcome: 'replayed', status: 201, attempts: 0 } }],
    ['a 400', forwarded(400, 'rejected')],
    ['a 401', forwarded(401, 'rejected')],
    ['a 409 that is no lock', forwarded(409, 'rejected')],
    ['a 303', forwarded(303, 'rejected')],
  ])('is done with %s', (_what, each) => {
    expect(judge(each)).toEqual(DONE);
  });

  test.each<[string, Case, object]>([
    ['a 408', forwarded(408, 'rejected'), again('status_408')],
    ['a 425', forwarded(425, 'rejected'), again('status_425')],
    ['a lock', forwarded(409, 'rejected', { write: { isLocked: true } }), again('status_409')],
    [
      'a 429',
      { ...forwarded(429, 'not_processed'), record: { status: 429, retryAfterSeconds: 7 } },
      again('status_429', 7000),
    ],
    ['a 503', forwarded(503, 'not_processed'), again('status_503')],
    ['a 4xx that broke off', forwarded(400, 'rejected', { isWhole: false }), again('status_400')],
    [
      'no connection',
      own({ outcome: 'upstream_error', status: 502, reason: 'connect' }, { write: { meaning: 'nothing_sent' } }),
      again('connect'),
    ],
    [
      'a full queue',
      own({ outcome: 'refused', status: 503, reason: 'queue_full', attempts: 0, retryAfterSeconds: 2 }),
      again('queue_full', 2000),
    ],
  ])('is tried again after %s', (_what, each, expected) => {
    expect(judge(each)).toEqual(expected);
  });

  test.each<[string, Case, object]>([
    [
      'a 500',
      { ...forwarded(500, 'may_have_taken_effect'), record: { outcome: 'unknown', status: 500 } },
      unknown('status_500'),
    ],
    [
      'no response',
      own({ outcome: 'unknown', status: 504, reason: 'timeout' }, { write: { meaning: 'may_have_taken_effect' } }),
      unknown('timeout'),
    ],
    [
      'a refusal of a write that is unresolved',
      own({ outcome: 'unknown', status: 504, reason: 'queue_full', attempts: 0 }),
      unknown('queue_full'),
    ],
    ['a 2xx that broke off', forwarded(200, 'answered', { isWhole: false }), unknown('incomplete')],
    [
      'a 2xx that was cut',
      { ...forwarded(200, 'answered'), record: { status: 200, isTruncated: true } },
      unknown('incomplete'),
    ],
    ['a 503, if it was so before', forwarded(503, 'not_processed', { wasUnknown: true }), unknown('status_503')],
    ['a 401, if it was so before', forwarded(401, 'rejected', { wasUnknown: true }), unknown('status_401')],
  ])('may have taken effect after %s', (_what, each, expected) => {
    expect(judge(each)).toEqual(expected);
  });

  test('ends with an unknown outcome if an earlier write with its key may be it', () => {
    const refusal = own({ outcome: 'refused', status: 409, reason: 'key_ambiguous', attempts: 0 });
    expect(judge(refusal)).toMatchObject({ kind: 'failed', reason: 'key_ambiguous', isUnknown: true, isFinal: true });
  });

  test('calls for another attempt if too many other clients have unfinished writes with the key', () => {
    const refusal = own({
      ...{ outcome: 'refused', status: 503, reason: 'key_overused', attempts: 0, retryAfterSeconds: 1 },
    });
    expect(judge(refusal)).toMatchObject({ kind: 'failed', reason: 'key_overused', isUnknown: false, isFinal: false });
  });

  const answered = { wasAnswered: true };
  test.each<[string, Case, object]>([
    ['is being done', own({ outcome: 'refused', status: 409, reason: 'key_in_use', attempts: 0 }), {}],
    ['has been answered', forwarded(503, 'not_processed', { write: answered }), { reason: 'answered_before' }],
    ['has been answered', forwarded(401, 'rejected', { write: answered }), { reason: 'answered_before' }],
    [
      'has been answered since an attempt of its own broke off',
      forwarded(503, 'not_processed', { wasUnknown: true, write: answered }),
      { reason: 'answered_before' },
    ],
    [
      'has been answered',
      own({ outcome: 'refused', status: 503, reason: 'queue_full', attempts: 0 }, { write: answered }),
      { reason: 'answered_before' },
    ],
  ])('is not failed if it %s by another request, and the next attempt asks anew', (_what, each, expected) => {
    const judgement = judge(each);
    expect(judgement).toMatchObject({ kind: 'failed', isUnknown: true, ...expected });
    // An answer is remembered by the delivery too: the record of the key may be gone at the next attempt.
    const isRemembered = judgement.kind === 'failed' && mayHaveTakenEffect(judgement.reason);
    expect(isRemembered).toBe('reason' in expected);
  });

  test('fails for ever if its key was answered for another request', () => {
    const refusal = own({ outcome: 'refused', status: 422, reason: 'key_reused', attempts: 0 }, { write: answered });
    expect(judge(refusal)).toEqual({ ...again('key_reused'), isFinal: true });
  });

  test.each([true, false])('ends as unknown when its key has expired, whether reported as unknown: %s', (isUnknown) => {
    const outcome = isUnknown ? 'unknown' : 'refused';
    expect(judge(own({ outcome, status: 409, reason: 'key_expired', attempts: 0 }))).toEqual({
      ...{ kind: 'failed', reason: 'unknown_key_expired', retryAfterMs: undefined, isUnknown: true, isFinal: true },
    });
  });

  test('ends when Tidegate refuses it for ever, as unknown if it may have taken effect before', () => {
    const refusal = { outcome: 'refused', status: 422, reason: 'key_reused', attempts: 0 } as const;
    expect(judge(own(refusal))).toEqual({ ...again('key_reused'), isFinal: true });
    expect(judge(own(refusal, { wasUnknown: true }))).toEqual({ ...unknown('key_reused'), isFinal: true });
  });

  test('is sent by the next process if this one ends', () => {
    const notSent = { kind: 'not_sent', retryAfterMs: 1000 };
    expect(judge({ record: { outcome: 'client_gone', status: 0 } })).toEqual(notSent);
    const draining = { status: 503, reason: 'draining', attempts: 0, retryAfterSeconds: 1 };
    expect(judge(own({ outcome: 'refused', ...draining }))).toEqual(notSent);
    expect(judge(own({ outcome: 'unknown', ...draining }))).toEqual(notSent);
  });
});

test('the reason of an attempt shows whether it may have taken effect', () => {
  const reasons = ['unknown_timeout', 'unreadable', 'expired', 'answered_before', 'timeout', undefined];
  expect(reasons.map(mayHaveTakenEffect)).toEqual([true, true, true, true, false, false]);
});
