import { describe, expect, test } from 'vitest';
import type { RetryChoice } from '../../../src/core/retry/choose-retry.ts';
import { chooseRetry } from '../../../src/core/retry/choose-retry.ts';
import { mayHaveTakenEffect } from '../../../src/core/idempotency/write-outcome.ts';
import type { BackOff } from '../../../src/core/backoff/back-off.ts';
import type { Hints, Quota } from '../../../src/core/hints/hints.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { RequestFacts } from '../../../src/core/exchange/request-facts.ts';
import { isNamedByKey } from '../../../src/core/exchange/request-facts.ts';
import type { RetryOn, RetryPolicy, RetryReason } from '../../../src/core/retry/retry-policy.ts';
import {
  failure,
  fixedDelay,
  requestFacts,
  response,
  RETRY_ALL,
  retryPolicy,
} from '../../support/core/policy-builders.ts';

const FIRST = { attempts: 1, isBodyReplayable: true, mayHaveTakenEffect: false, memory: 0 };

interface Given {
  readonly request?: Partial<RequestFacts>;
  readonly policy?: Partial<RetryPolicy>;
  readonly soFar?: Partial<typeof FIRST & { readonly keyAge: number }>;
  readonly chance?: number;
}

function choose(outcome: AttemptOutcome, { request, policy, soFar, chance = 0 }: Given = {}): RetryChoice {
  return chooseRetry(requestFacts(request), retryPolicy(policy), outcome, { ...FIRST, ...soFar }, () => chance);
}

/** A summary in one word: the reason of the retry, why there is none, or 'settled'. */
function verdict(outcome: AttemptOutcome, given: Given = {}): string {
  const choice = choose(outcome, given);
  if (choice.kind === 'retry') return choice.retry.reason;
  return choice.kind === 'stop' ? choice.why : 'settled';
}

function delayOf(outcome: AttemptOutcome, given: Given = {}): number | undefined {
  const choice = choose(outcome, given);
  return choice.kind === 'retry' ? choice.retry.delay : undefined;
}

const IDEMPOTENT = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY', 'PUT', 'DELETE'];
const WRITES = ['POST', 'PATCH'];

/** The safety table, row by row: the outcome, and whether each of the three kinds of request may be retried. */
const TABLE: readonly {
  readonly happened: string;
  readonly outcomes: readonly AttemptOutcome[];
  readonly reason: RetryReason;
  readonly idempotent: boolean;
  readonly keyed: boolean;
  readonly unkeyed: boolean;
  /** With `unkeyedWrites: on429`. */
  readonly unkeyedOn429: boolean;
}[] = [
  {
    happened: 'no connection: nothing sent',
    outcomes: [failure('connect', false)],
    reason: 'connect',
    idempotent: true,
    keyed: true,
    unkeyed: true,
    unkeyedOn429: true,
  },
  {
    happened: 'reset before anything was sent',
    outcomes: [failure('reset', false)],
    reason: 'reset',
    idempotent: true,
    keyed: true,
    unkeyed: true,
    unkeyedOn429: true,
  },
  {
    happened: '429',
    outcomes: [response(429)],
    reason: 'status_429',
    idempotent: true,
    keyed: true,
    unkeyed: false,
    unkeyedOn429: true,
  },
  {
    happened: '503',
    outcomes: [response(503)],
    reason: 'status_5xx',
    idempotent: true,
    keyed: true,
    unkeyed: false,
    unkeyedOn429: false,
  },
  {
    happened: '500, 502, 504',
    outcomes: [response(500), response(502), response(504)],
    reason: 'status_5xx',
    idempotent: true,
    keyed: true,
    unkeyed: false,
    unkeyedOn429: false,
  },
  {
    happened: 'reset after sending',
    outcomes: [failure('reset', true)],
    reason: 'reset',
    idempotent: true,
    keyed: true,
    unkeyed: false,
    unkeyedOn429: false,
  },
  {
    happened: 'timeout after sending',
    outcomes: [failure('timeout', true)],
    reason: 'timeout',
    idempotent: true,
    keyed: true,
    unkeyed: false,
    unkeyedOn429: false,
  },
  {
    happened: 'a lock on the object',
    outcomes: [response(429, { lock: true }), response(409, { lock: true })],
    reason: 'lock',
    idempotent: true,
    keyed: true,
    unkeyed: false,
    unkeyedOn429: false,
  },
];

describe.each(TABLE)('$happened', ({ outcomes, reason, idempotent, keyed, unkeyed, unkeyedOn429 }) => {
  const allowed = (may: boolean) => outcomes.map(() => (may ? reason : 'not_idempotent'));
  const verdicts = (given: Given) => outcomes.map((outcome) => verdict(outcome, given));

  test.each(IDEMPOTENT)('%s', (method) => {
    expect(verdicts({ request: { method } })).toEqual(allowed(idempotent));
  });

  test.each(WRITES)('%s with an idempotency key', (method) => {
    expect(verdicts({ request: { method, keyed: true } })).toEqual(allowed(keyed));
  });

  test.each(WRITES)('%s without a key', (method) => {
    expect(verdicts({ request: { method } })).toEqual(allowed(unkeyed));
    expect(verdicts({ request: { method }, policy: { unkeyedWrites: 'on429' } })).toEqual(allowed(unkeyedOn429));
    expect(verdicts({ request: { method }, policy: { unkeyedWrites: 'always' } })).toEqual(allowed(true));
  });

  test('an unknown method counts as a write', () => {
    expect(verdicts({ request: { method: 'PURGE' } })).toEqual(allowed(unkeyed));
  });
});

describe('409', () => {
  test('with a key means that the key is in progress: retried with back-off', () => {
    expect(verdict(response(409), { request: { method: 'POST', keyed: true } })).toBe('lock');
  });

  test('without a key is forwarded', () => {
    expect(verdict(response(409), { request: { method: 'POST' } })).toBe('settled');
    expect(verdict(response(409), { request: { method: 'PUT' } })).toBe('settled');
  });

  test('is forwarded if locks are not retried', () => {
    const given: Given = {
      request: { method: 'POST', keyed: true },
      policy: { retryOn: { ...RETRY_ALL, lock: false } },
    };
    expect(verdict(response(409), given)).toBe('settled');
    expect(verdict(response(409, { retryAdvice: 'retry' }), given)).toBe('lock');
  });

  test('and a 429 about an object are retried if their status is listed', () => {
    const given = (...statuses: number[]): Given => ({
      request: { method: 'POST', keyed: true },
      policy: { retryOn: { ...RETRY_ALL, lock: false, statuses: new Set(statuses) } },
    });
    expect(verdict(response(409), given(409))).toBe('lock');
    expect(verdict(response(429, { lock: true }), given(429))).toBe('lock');
    expect(verdict(response(429, { lock: true }), given(409))).toBe('settled');
  });

  test('after an attempt without a response means that attempt is in progress: retried until it ends', () => {
    const given: Given = {
      request: { method: 'POST', keyed: true },
      policy: { retryOn: { ...RETRY_ALL, lock: false } },
      soFar: { attempts: 2, mayHaveTakenEffect: true },
    };
    expect(verdict(response(409), given)).toBe('lock');
  });
});

describe('a retry condition', () => {
  test.each([200, 204, 301, 304, 400, 401, 402, 403, 404, 408, 410, 422, 451])(
    'excludes %i, which is a definite response',
    (status) => {
      expect(verdict(response(status))).toBe('settled');
    },
  );

  test('includes listed statuses only', () => {
    const nothing: RetryOn = {
      statuses: new Set(),
      connect: false,
      reset: false,
      timeout: false,
      lock: false,
    };
    const outcomes = [
      response(429),
      response(503),
      failure('connect', false),
      failure('reset', true),
      failure('timeout', true),
    ];
    expect(outcomes.map((outcome) => verdict(outcome, { policy: { retryOn: nothing } }))).toEqual(
      outcomes.map(() => 'settled'),
    );
    const some: RetryOn = { ...nothing, statuses: new Set([503]), timeout: true };
    expect(outcomes.map((outcome) => verdict(outcome, { policy: { retryOn: some } }))).toEqual([
      'settled',
      'status_5xx',
      'settled',
      'settled',
      'timeout',
    ]);
  });

  test('never includes a status below 400, even if it is listed or requested', () => {
    const retryOn = { ...RETRY_ALL, statuses: new Set([200, 302]) };
    expect(verdict(response(200, { retryAdvice: 'retry' }), { policy: { retryOn } })).toBe('settled');
    expect(verdict(response(302), { policy: { retryOn } })).toBe('settled');
  });

  test('includes an explicit request of the upstream, if the request is repeatable', () => {
    expect(verdict(response(400, { retryAdvice: 'retry' }), { request: { method: 'POST', keyed: true } })).toBe(
      'status_5xx',
    );
    expect(verdict(response(400, { retryAdvice: 'retry' }), { request: { method: 'POST' } })).toBe('not_idempotent');
  });

  test('never includes the departure of a client', () => {
    expect(verdict(failure('aborted', true))).toBe('settled');
    expect(verdict(failure('aborted', false))).toBe('settled');
    expect(verdict(failure('too_many_files', false))).toBe('settled');
  });
});

describe('a retry is prevented by', () => {
  test('the veto of the upstream, before all else', () => {
    const never = { retryAdvice: 'never' } as const;
    expect(verdict(response(503, never))).toBe('upstream_veto');
    expect(verdict(response(429, never))).toBe('upstream_veto');
    expect(verdict(response(409, never), { request: { method: 'POST', keyed: true } })).toBe('upstream_veto');
    expect(verdict(response(503, never), { request: { method: 'POST' } })).toBe('upstream_veto');
    expect(verdict(response(404, never))).toBe('settled');
  });

  test('a body that cannot be sent again, unless nothing of it was sent', () => {
    const given: Given = { request: { method: 'PUT' }, soFar: { isBodyReplayable: false } };
    expect(verdict(response(503), given)).toBe('body_too_large');
    expect(verdict(failure('reset', true), given)).toBe('body_too_large');
    expect(verdict(failure('connect', false), given)).toBe('connect');
    // The upstream has not read the body, but it is consumed.
    expect(verdict({ kind: 'error', reason: 'connect', sent: false, bodyConsumed: true, took: 0 }, given)).toBe(
      'body_too_large',
    );
    expect(verdict({ kind: 'error', reason: 'connect', sent: false, bodyConsumed: true, took: 0 })).toBe('connect');
  });

  test('the number of sends', () => {
    expect(verdict(response(503), { soFar: { attempts: 3 } })).toBe('status_5xx');
    expect(verdict(response(503), { soFar: { attempts: 4 } })).toBe('attempts_exhausted');
    expect(verdict(response(503), { policy: { attempts: 1 } })).toBe('attempts_exhausted');
  });

  test('another proxy that retries already', () => {
    expect(verdict(response(503), { request: { priorAttempts: 1 } })).toBe('attempts_exhausted');
    expect(verdict(failure('connect', false), { request: { priorAttempts: 2 } })).toBe('attempts_exhausted');
    expect(verdict(response(200), { request: { priorAttempts: 1 } })).toBe('settled');
  });

  test('a backoff that gives up', () => {
    const backOff: BackOff = { name: 'twice', next: (n) => (n < 2 ? { delay: 1, memory: 0 } : undefined) };
    expect(verdict(response(503), { policy: { backOff }, soFar: { attempts: 2 } })).toBe('status_5xx');
    expect(verdict(response(503), { policy: { backOff }, soFar: { attempts: 3 } })).toBe('attempts_exhausted');
  });

  test('a hint beyond the maximum hold of a client', () => {
    const policy = { maxRetryAfter: 2000 };
    expect(verdict(response(429, { retryAfterMs: 2000 }), { policy })).toBe('status_429');
    expect(verdict(response(429, { retryAfterMs: 2001 }), { policy })).toBe('retry_after_too_long');
    expect(verdict(response(503, { retryAfterMs: 2001 }), { policy })).toBe('retry_after_too_long');
    expect(verdict(response(429, { quota: spent(2001) }), { policy })).toBe('retry_after_too_long');
  });
});

describe('the delay', () => {
  test('is the backoff, given the number of retries and its memory', () => {
    const draws: [number, number, number][] = [];
    const backOff: BackOff = {
      name: 'spy',
      next: (n, memory, random) => {
        draws.push([n, memory, random()]);
        return { delay: 70 + n, memory: memory + 1 };
      },
    };
    expect(choose(response(500), { policy: { backOff }, soFar: { attempts: 3, memory: 8 }, chance: 0.25 })).toEqual({
      kind: 'retry',
      retry: { reason: 'status_5xx', delay: 72, source: 'backoff', usesBudget: true, memory: 9 },
    });
    expect(draws).toEqual([[2, 8, 0.25]]);
  });

  test('is the backoff of its own reason, if there is one', () => {
    const backOffFor = { status_429: fixedDelay(7), connect: fixedDelay(9), lock: fixedDelay(11) };
    expect(delayOf(response(429), { policy: { backOffFor } })).toBe(7);
    expect(delayOf(failure('connect', false), { policy: { backOffFor } })).toBe(9);
    expect(delayOf(response(429, { lock: true }), { policy: { backOffFor } })).toBe(11);
    expect(delayOf(response(503), { policy: { backOffFor } })).toBe(100);
  });

  test('is a hint instead of the backoff, whether shorter or longer', () => {
    expect(choose(response(503, { retryAfterMs: 2000 }))).toEqual({
      kind: 'retry',
      retry: { reason: 'status_5xx', delay: 2000, source: 'hint', usesBudget: true, memory: 0 },
    });
    expect(delayOf(response(503, { retryAfterMs: 1 }))).toBe(1);
    expect(delayOf(response(503, { retryAfterMs: 0 }))).toBe(100);
  });

  test('is the backoff if an exhausted quota has been reset already', () => {
    expect([delayOf(response(429, { quota: spent(0) })), delayOf(response(429, { quota: spent(undefined) }))]).toEqual([
      100, 100,
    ]);
  });

  test('is never shorter than the hint: at most a tenth longer, and at most a second', () => {
    expect(delayOf(response(429, { retryAfterMs: 2000 }), { chance: 0 })).toBe(2000);
    expect(delayOf(response(429, { retryAfterMs: 2000 }), { chance: 0.5 })).toBe(2100);
    expect(delayOf(response(429, { retryAfterMs: 50_000 }), { chance: 0.5 })).toBe(50_500);
  });

  test('lasts until the reset of an exhausted quota, unless a Retry-After differs', () => {
    expect(delayOf(response(429, { quota: spent(3000) }))).toBe(3000);
    expect(delayOf(response(429, { quota: spent(3000), retryAfterMs: 1000 }))).toBe(1000);
    expect(delayOf(response(429, { quota: { ...spent(3000), remaining: 1 } }))).toBe(100);
    expect(delayOf(response(429, { quota: spent(undefined) }))).toBe(100);
  });
});

describe('an attempt that no endpoint processed', () => {
  const elsewhere = (outcome: AttemptOutcome): AttemptOutcome => ({ ...outcome, otherEndpointsWork: true });
  const stale = { ...failure('reset', true), isStaleConnection: true } as AttemptOutcome;
  const soFar = { memory: 7 };

  test('is repeated at once and free of charge, at another endpoint or on a new connection', () => {
    const atOnce = { delay: 0, source: 'backoff', usesBudget: false, memory: 7 };
    expect(choose(elsewhere(failure('connect', false)), { soFar })).toEqual({
      kind: 'retry',
      retry: { ...atOnce, reason: 'connect' },
    });
    expect(choose(stale, { soFar })).toEqual({ kind: 'retry', retry: { ...atOnce, reason: 'reset' } });
  });

  test('is one that was not sent, to an upstream with another endpoint that may receive it', () => {
    expect(delayOf(failure('connect', false))).toBe(100);
    expect(delayOf(elsewhere(failure('reset', true)))).toBe(100);
    expect(delayOf(elsewhere(response(503)))).toBe(100);
    const pinned = { ...FIRST, isPinned: true };
    expect(delayOf(elsewhere(failure('connect', false)), { soFar: pinned })).toBe(100);
    expect(delayOf(stale, { soFar: pinned })).toBe(0);
    expect(delayOf(elsewhere(failure('connect', false)), { soFar: { ...FIRST, ...{ isPinned: false } } })).toBe(0);
  });
});

describe('the key is the only identification', () => {
  test('of a write that is not idempotent by its method or its path', () => {
    const isNamed = (facts: Partial<RequestFacts>) => isNamedByKey(requestFacts({ method: 'POST', ...facts }));
    expect([isNamed({ keyed: true }), isNamed({ keyed: true, replaySafety: 'never' })]).toEqual([true, true]);
    expect([isNamed({}), isNamed({ keyed: true, replaySafety: 'safe' })]).toEqual([false, false]);
    expect(isNamed({ keyed: true, method: 'PUT' })).toBe(false);
  });
});

describe('an upstream that stores the outcome of a key', () => {
  const KEYED = { method: 'POST', keyed: true } as const;
  const verdicts = (outcomes: readonly AttemptOutcome[], given: Given) =>
    outcomes.map((outcome) => verdict(outcome, given));
  const OWN = [response(500), response(507), response(520)];
  const OTHERS = [response(502), response(503), response(504), failure('reset', true), failure('timeout', true)];
  const RETRIED = ['status_5xx', 'status_5xx', 'status_5xx', 'reset', 'timeout'];

  test('and of failures gets a retry after a listed 4xx, which is no stored failure', () => {
    const policy = { replaysErrors: true, retryOn: { ...RETRY_ALL, statuses: new Set([425, 500]) } };
    const of = (status: number) => verdict(response(status), { request: { method: 'POST', keyed: true }, policy });
    expect([of(425), of(500)]).toEqual(['status_5xx', 'settled']);
  });

  test('and of failures gets no retry, because it would only repeat its failure', () => {
    const policy = { replaysErrors: true };
    expect(verdicts(OWN, { request: KEYED, policy })).toEqual(['settled', 'settled', 'settled']);
    expect(verdicts(OTHERS, { request: KEYED, policy })).toEqual(RETRIED);
    expect(verdict(response(500, { retryAdvice: 'retry' }), { request: KEYED, policy })).toBe('status_5xx');
    expect(verdict(response(500), { request: { method: 'GET', keyed: true }, policy })).toBe('status_5xx');
    expect(verdict(response(500), { request: { method: 'PUT' }, policy })).toBe('status_5xx');
    expect(verdict(response(500), { request: { method: 'POST' }, policy })).toBe('not_idempotent');
  });

  test('of successes alone gets no retry of a failed write, because it would execute the write again', () => {
    const policy = { replaysErrors: false };
    expect(verdicts(OWN, { request: KEYED, policy })).toEqual(['not_idempotent', 'not_idempotent', 'not_idempotent']);
    expect(verdicts(OTHERS, { request: KEYED, policy })).toEqual(RETRIED);
    expect(verdict(response(500, { retryAdvice: 'retry' }), { request: KEYED, policy })).toBe('not_idempotent');
    expect(verdict(response(500), { request: { method: 'PUT', keyed: true }, policy })).toBe('status_5xx');
    expect(verdict(response(500), { request: KEYED, policy: { ...policy, unkeyedWrites: 'always' } })).toBe(
      'status_5xx',
    );
  });

  test('for a limited time gets no retry that would arrive later', () => {
    const request = { ...KEYED, keyTtl: 1000 };
    const after = (keyAge: number, given: Given = {}) =>
      verdict(response(503), { request, soFar: { keyAge }, ...given });
    expect([after(900), after(900.1), after(5000)]).toEqual(['status_5xx', 'key_expired', 'key_expired']);
    expect(verdict(response(429, { retryAfterMs: 950 }), { request, soFar: { keyAge: 40 } })).toBe('status_429');
    expect(verdict(response(429, { retryAfterMs: 970 }), { request, soFar: { keyAge: 40 } })).toBe('key_expired');
    expect(after(5000, { request: { ...request, method: 'PUT' } })).toBe('status_5xx');
    expect(after(5000, { request: { ...request, keyed: false } })).toBe('not_idempotent');
    expect(after(5000, { policy: { unkeyedWrites: 'always' } })).toBe('status_5xx');
    expect(verdict(failure('connect', false), { request })).toBe('connect');
  });
});

describe('the budget', () => {
  test.each<[string, AttemptOutcome, boolean]>([
    ['5xx', response(503), true],
    ['a broken connection', failure('reset', true), true],
    ['a refused connection', failure('connect', false), true],
    ['a lock', response(429, { lock: true }), true],
    ['429, which pacing bounds', response(429), false],
  ])('is charged for %s', (_, outcome, usesBudget) => {
    expect(choose(outcome)).toMatchObject({ kind: 'retry', retry: { usesBudget } });
  });
});

describe('a write that may have taken effect', () => {
  const post = requestFacts({ method: 'POST', keyed: true });

  test.each([500, 502, 504, 507, 520, 522, 524, 599])('stays unresolved at %i', (status) => {
    expect(mayHaveTakenEffect(post, response(status))).toBe(true);
  });

  test.each([200, 201, 302, 400, 404, 409, 429, 501, 503, 505])('is resolved by %i', (status) => {
    expect(mayHaveTakenEffect(post, response(status))).toBe(false);
  });

  test('stays unresolved at a broken connection once bytes had been sent', () => {
    for (const reason of ['connect', 'reset', 'timeout', 'aborted'] as const) {
      expect(mayHaveTakenEffect(post, failure(reason, true))).toBe(true);
      expect(mayHaveTakenEffect(post, failure(reason, false))).toBe(false);
    }
  });

  test.each(['PUT', 'DELETE', 'PATCH', 'PURGE'])('includes %s', (method) => {
    expect(mayHaveTakenEffect(requestFacts({ method }), failure('reset', true))).toBe(true);
  });

  test.each(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY'])('excludes %s', (method) => {
    expect(mayHaveTakenEffect(requestFacts({ method }), failure('reset', true))).toBe(false);
    expect(mayHaveTakenEffect(requestFacts({ method }), response(500))).toBe(false);
  });
});

function spent(resetIn: Quota['resetIn']): NonNullable<Hints['quota']> {
  return { remaining: 0, limit: 100, resetIn, window: 60_000 };
}

describe('configured rules for a response or a path', () => {
  test('retry throttling as a 429, whatever its status', () => {
    for (const status of [200, 403, 503]) {
      expect(verdict(response(status, { throttled: true }))).toBe('status_429');
      expect(
        verdict(response(status, { throttled: true }), { policy: { retryOn: { ...RETRY_ALL, statuses: new Set() } } }),
      ).toBe('settled');
      const unkeyed = { request: { method: 'POST' } };
      expect(verdict(response(status, { throttled: true }), unkeyed)).toBe('not_idempotent');
      expect(verdict(response(status, { throttled: true }), { ...unkeyed, policy: { unkeyedWrites: 'on429' } })).toBe(
        'status_429',
      );
      // It had no effect, although a 5xx in general may have had one.
      expect(mayHaveTakenEffect(requestFacts({ method: 'POST' }), response(status, { throttled: true }))).toBe(false);
    }
    const choice = choose(response(200, { throttled: true }));
    expect(choice.kind === 'retry' && choice.retry.usesBudget).toBe(false);
  });

  test('forward a 429 that does not mean throttling', () => {
    expect(verdict(response(429, { throttled: false }))).toBe('settled');
  });

  test('allow a repeat of a POST that only reads, which leaves nothing unresolved', () => {
    const reads = { request: { method: 'POST', replaySafety: 'safe' } } as const;
    expect(verdict(failure('reset', true), reads)).toBe('reset');
    expect(verdict(response(500), reads)).toBe('status_5xx');
    expect(mayHaveTakenEffect(requestFacts(reads.request), response(500))).toBe(false);
  });

  test('prevent a second send, whatever the key and the method, unless nothing was sent', () => {
    for (const request of [{ method: 'POST', keyed: true }, { method: 'PUT' }, { method: 'GET' }]) {
      const never = { request: { ...request, replaySafety: 'never' }, policy: { unkeyedWrites: 'always' } } as const;
      expect(verdict(response(503), never)).toBe('not_idempotent');
      expect(verdict(response(429), never)).toBe('not_idempotent');
      expect(verdict(failure('reset', true), never)).toBe('not_idempotent');
      expect(verdict(failure('connect', false), never)).toBe('connect');
    }
  });
});
