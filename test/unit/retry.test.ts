import { describe, expect, test } from 'vitest';
import type { RetryChoice } from '../../src/core/retry/choose-retry.ts';
import { chooseRetry } from '../../src/core/retry/choose-retry.ts';
import { mayHaveHappened } from '../../src/core/idempotency/write-outcome.ts';
import type {
  BackOff,
  Hints,
  Outcome,
  Quota,
  RequestFacts,
  RetryOn,
  RetryPolicy,
  RetryReason,
} from '../../src/core/exchange/attempt-outcome.ts';
import { failure, fixedDelay, requestFacts, response, RETRY_ALL, retryPolicy } from '../support/policy.ts';

const FIRST = { attempts: 1, replayable: true, mayBeDone: false, memory: 0 };

interface Given {
  readonly request?: Partial<RequestFacts>;
  readonly policy?: Partial<RetryPolicy>;
  readonly soFar?: Partial<typeof FIRST & { readonly keyAge: number }>;
  readonly chance?: number;
}

function choose(outcome: Outcome, { request, policy, soFar, chance = 0 }: Given = {}): RetryChoice {
  return chooseRetry(requestFacts(request), retryPolicy(policy), outcome, { ...FIRST, ...soFar }, () => chance);
}

/** In a word: the reason of the retry, why there is none, or 'settled'. */
function verdict(outcome: Outcome, given: Given = {}): string {
  const choice = choose(outcome, given);
  if (choice.kind === 'retry') return choice.retry.reason;
  return choice.kind === 'stop' ? choice.why : 'settled';
}

function delayOf(outcome: Outcome, given: Given = {}): number | undefined {
  const choice = choose(outcome, given);
  return choice.kind === 'retry' ? choice.retry.delay : undefined;
}

const IDEMPOTENT = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY', 'PUT', 'DELETE'];
const WRITES = ['POST', 'PATCH'];

/** The safety table, row by row: what happened, and what the three kinds of request may do about it. */
const TABLE: readonly {
  readonly happened: string;
  readonly outcomes: readonly Outcome[];
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
  const tell = (given: Given) => outcomes.map((outcome) => verdict(outcome, given));

  test.each(IDEMPOTENT)('%s', (method) => {
    expect(tell({ request: { method } })).toEqual(allowed(idempotent));
  });

  test.each(WRITES)('%s with an idempotency key', (method) => {
    expect(tell({ request: { method, keyed: true } })).toEqual(allowed(keyed));
  });

  test.each(WRITES)('%s without', (method) => {
    expect(tell({ request: { method } })).toEqual(allowed(unkeyed));
    expect(tell({ request: { method }, policy: { unkeyedWrites: 'on429' } })).toEqual(allowed(unkeyedOn429));
    expect(tell({ request: { method }, policy: { unkeyedWrites: 'always' } })).toEqual(allowed(true));
  });

  test('an unknown method counts as a write', () => {
    expect(tell({ request: { method: 'PURGE' } })).toEqual(allowed(unkeyed));
  });
});

describe('409', () => {
  test('with a key says that the key is in progress: retried with back-off', () => {
    expect(verdict(response(409), { request: { method: 'POST', keyed: true } })).toBe('lock');
  });

  test('without a key is an answer', () => {
    expect(verdict(response(409), { request: { method: 'POST' } })).toBe('settled');
    expect(verdict(response(409), { request: { method: 'PUT' } })).toBe('settled');
  });

  test('is an answer where locks are not retried', () => {
    const given: Given = {
      request: { method: 'POST', keyed: true },
      policy: { retryOn: { ...RETRY_ALL, lock: false } },
    };
    expect(verdict(response(409), given)).toBe('settled');
    expect(verdict(response(409, { verdict: 'retry' }), given)).toBe('lock');
  });

  test('and a 429 about an object are retried where their status is listed', () => {
    const given = (...statuses: number[]): Given => ({
      request: { method: 'POST', keyed: true },
      policy: { retryOn: { ...RETRY_ALL, lock: false, statuses: new Set(statuses) } },
    });
    expect(verdict(response(409), given(409))).toBe('lock');
    expect(verdict(response(429, { lock: true }), given(429))).toBe('lock');
    expect(verdict(response(429, { lock: true }), given(409))).toBe('settled');
  });

  test('after an attempt without an answer is that attempt at work: its answer is waited for', () => {
    const given: Given = {
      request: { method: 'POST', keyed: true },
      policy: { retryOn: { ...RETRY_ALL, lock: false } },
      soFar: { attempts: 2, mayBeDone: true },
    };
    expect(verdict(response(409), given)).toBe('lock');
  });
});

describe('what calls for a retry', () => {
  test.each([200, 204, 301, 304, 400, 401, 402, 403, 404, 408, 410, 422, 451])('%i is an answer', (status) => {
    expect(verdict(response(status))).toBe('settled');
  });

  test('only what is listed', () => {
    const nothing: RetryOn = {
      statuses: new Set(),
      connectFailure: false,
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

  test('a status below 400 never, even when it is listed or asked for', () => {
    const retryOn = { ...RETRY_ALL, statuses: new Set([200, 302]) };
    expect(verdict(response(200, { verdict: 'retry' }), { policy: { retryOn } })).toBe('settled');
    expect(verdict(response(302), { policy: { retryOn } })).toBe('settled');
  });

  test('the upstream that asks for it, where it is safe', () => {
    expect(verdict(response(400, { verdict: 'retry' }), { request: { method: 'POST', keyed: true } })).toBe(
      'status_5xx',
    );
    expect(verdict(response(400, { verdict: 'retry' }), { request: { method: 'POST' } })).toBe('not_idempotent');
  });

  test('a client that has gone never', () => {
    expect(verdict(failure('aborted', true))).toBe('settled');
    expect(verdict(failure('aborted', false))).toBe('settled');
    expect(verdict(failure('too_many_files', false))).toBe('settled');
  });
});

describe('what stands against it', () => {
  test('the veto of the upstream, before all else', () => {
    const never = { verdict: 'never' } as const;
    expect(verdict(response(503, never))).toBe('upstream_veto');
    expect(verdict(response(429, never))).toBe('upstream_veto');
    expect(verdict(response(409, never), { request: { method: 'POST', keyed: true } })).toBe('upstream_veto');
    expect(verdict(response(503, never), { request: { method: 'POST' } })).toBe('upstream_veto');
    expect(verdict(response(404, never))).toBe('settled');
  });

  test('a body that cannot be sent again, unless nothing of it was sent', () => {
    const given: Given = { request: { method: 'PUT' }, soFar: { replayable: false } };
    expect(verdict(response(503), given)).toBe('body_too_large');
    expect(verdict(failure('reset', true), given)).toBe('body_too_large');
    expect(verdict(failure('connect', false), given)).toBe('connect');
    // Unread by the upstream, but gone all the same.
    expect(verdict({ kind: 'error', reason: 'connect', sent: false, bodySpent: true, took: 0 }, given)).toBe(
      'body_too_large',
    );
    expect(verdict({ kind: 'error', reason: 'connect', sent: false, bodySpent: true, took: 0 })).toBe('connect');
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

  test('a back-off that gives up', () => {
    const backOff: BackOff = { name: 'twice', next: (n) => (n < 2 ? { delay: 1, memory: 0 } : undefined) };
    expect(verdict(response(503), { policy: { backOff }, soFar: { attempts: 2 } })).toBe('status_5xx');
    expect(verdict(response(503), { policy: { backOff }, soFar: { attempts: 3 } })).toBe('attempts_exhausted');
  });

  test('a hint beyond what a client may be held for', () => {
    const policy = { maxRetryAfter: 2000 };
    expect(verdict(response(429, { retryAfter: 2000 }), { policy })).toBe('status_429');
    expect(verdict(response(429, { retryAfter: 2001 }), { policy })).toBe('retry_after_too_long');
    expect(verdict(response(503, { retryAfter: 2001 }), { policy })).toBe('retry_after_too_long');
    expect(verdict(response(429, { quota: spent(2001) }), { policy })).toBe('retry_after_too_long');
  });
});

describe('when', () => {
  test('after the back-off, told how many retries there were and what it remembered', () => {
    const asked: [number, number, number][] = [];
    const backOff: BackOff = {
      name: 'spy',
      next: (n, memory, random) => {
        asked.push([n, memory, random()]);
        return { delay: 70 + n, memory: memory + 1 };
      },
    };
    expect(choose(response(500), { policy: { backOff }, soFar: { attempts: 3, memory: 8 }, chance: 0.25 })).toEqual({
      kind: 'retry',
      retry: { reason: 'status_5xx', delay: 72, source: 'backoff', charged: true, memory: 9 },
    });
    expect(asked).toEqual([[2, 8, 0.25]]);
  });

  test('after the back-off of its own reason, where there is one', () => {
    const backOffFor = { status_429: fixedDelay(7), connect: fixedDelay(9), lock: fixedDelay(11) };
    expect(delayOf(response(429), { policy: { backOffFor } })).toBe(7);
    expect(delayOf(failure('connect', false), { policy: { backOffFor } })).toBe(9);
    expect(delayOf(response(429, { lock: true }), { policy: { backOffFor } })).toBe(11);
    expect(delayOf(response(503), { policy: { backOffFor } })).toBe(100);
  });

  test('a hint replaces the back-off, be it shorter or longer', () => {
    expect(choose(response(503, { retryAfter: 2000 }))).toEqual({
      kind: 'retry',
      retry: { reason: 'status_5xx', delay: 2000, source: 'hint', charged: true, memory: 0 },
    });
    expect(delayOf(response(503, { retryAfter: 1 }))).toBe(1);
    expect(delayOf(response(503, { retryAfter: 0 }))).toBe(100);
  });

  test('never earlier than asked: at most a tenth later, and at most a second', () => {
    expect(delayOf(response(429, { retryAfter: 2000 }), { chance: 0 })).toBe(2000);
    expect(delayOf(response(429, { retryAfter: 2000 }), { chance: 0.5 })).toBe(2100);
    expect(delayOf(response(429, { retryAfter: 50_000 }), { chance: 0.5 })).toBe(50_500);
  });

  test('a spent quota asks to wait for its reset, where no Retry-After says otherwise', () => {
    expect(delayOf(response(429, { quota: spent(3000) }))).toBe(3000);
    expect(delayOf(response(429, { quota: spent(3000), retryAfter: 1000 }))).toBe(1000);
    expect(delayOf(response(429, { quota: { ...spent(3000), remaining: 1 } }))).toBe(100);
    expect(delayOf(response(429, { quota: spent(undefined) }))).toBe(100);
  });
});

describe('an upstream that remembers what became of a key', () => {
  const KEYED = { method: 'POST', keyed: true } as const;
  const told = (outcomes: readonly Outcome[], given: Given) => outcomes.map((outcome) => verdict(outcome, given));
  const OWN = [response(500), response(507), response(520)];
  const OTHERS = [response(502), response(503), response(504), failure('reset', true), failure('timeout', true)];
  const RETRIED = ['status_5xx', 'status_5xx', 'status_5xx', 'reset', 'timeout'];

  test('and its failures too: a failure of its own would only be told again', () => {
    const policy = { replaysErrors: true };
    expect(told(OWN, { request: KEYED, policy })).toEqual(['settled', 'settled', 'settled']);
    expect(told(OTHERS, { request: KEYED, policy })).toEqual(RETRIED);
    expect(verdict(response(500, { verdict: 'retry' }), { request: KEYED, policy })).toBe('status_5xx');
    expect(verdict(response(500), { request: { method: 'GET', keyed: true }, policy })).toBe('status_5xx');
    expect(verdict(response(500), { request: { method: 'PUT' }, policy })).toBe('status_5xx');
    expect(verdict(response(500), { request: { method: 'POST' }, policy })).toBe('not_idempotent');
  });

  test('of successes alone: what failed at it would be done anew', () => {
    const policy = { replaysErrors: false };
    expect(told(OWN, { request: KEYED, policy })).toEqual(['not_idempotent', 'not_idempotent', 'not_idempotent']);
    expect(told(OTHERS, { request: KEYED, policy })).toEqual(RETRIED);
    expect(verdict(response(500, { verdict: 'retry' }), { request: KEYED, policy })).toBe('not_idempotent');
    expect(verdict(response(500), { request: { method: 'PUT', keyed: true }, policy })).toBe('status_5xx');
    expect(verdict(response(500), { request: KEYED, policy: { ...policy, unkeyedWrites: 'always' } })).toBe(
      'status_5xx',
    );
  });

  test('for a time: it is not sent again where that would come too late', () => {
    const request = { ...KEYED, keyTtl: 1000 };
    const after = (keyAge: number, given: Given = {}) =>
      verdict(response(503), { request, soFar: { keyAge }, ...given });
    expect([after(900), after(900.1), after(5000)]).toEqual(['status_5xx', 'key_expired', 'key_expired']);
    expect(verdict(response(429, { retryAfter: 950 }), { request, soFar: { keyAge: 40 } })).toBe('status_429');
    expect(verdict(response(429, { retryAfter: 970 }), { request, soFar: { keyAge: 40 } })).toBe('key_expired');
    expect(after(5000, { request: { ...request, method: 'PUT' } })).toBe('status_5xx');
    expect(after(5000, { request: { ...request, keyed: false } })).toBe('not_idempotent');
    expect(after(5000, { policy: { unkeyedWrites: 'always' } })).toBe('status_5xx');
    expect(verdict(failure('connect', false), { request })).toBe('connect');
  });
});

describe('the budget', () => {
  test.each<[string, Outcome, boolean]>([
    ['5xx', response(503), true],
    ['a broken connection', failure('reset', true), true],
    ['a refused connection', failure('connect', false), true],
    ['a lock', response(429, { lock: true }), true],
    ['429, which pacing bounds', response(429), false],
  ])('for %s', (_, outcome, charged) => {
    expect(choose(outcome)).toMatchObject({ kind: 'retry', retry: { charged } });
  });
});

describe('a write that may have happened', () => {
  const post = requestFacts({ method: 'POST', keyed: true });

  test.each([500, 502, 504, 507, 520, 522, 524, 599])('%i leaves it open', (status) => {
    expect(mayHaveHappened(post, response(status))).toBe(true);
  });

  test.each([200, 201, 302, 400, 404, 409, 429, 501, 503, 505])('%i does not', (status) => {
    expect(mayHaveHappened(post, response(status))).toBe(false);
  });

  test('a connection that broke leaves it open once bytes had gone out', () => {
    for (const reason of ['connect', 'reset', 'timeout', 'aborted'] as const) {
      expect(mayHaveHappened(post, failure(reason, true))).toBe(true);
      expect(mayHaveHappened(post, failure(reason, false))).toBe(false);
    }
  });

  test.each(['PUT', 'DELETE', 'PATCH', 'PURGE'])('%s is a write', (method) => {
    expect(mayHaveHappened(requestFacts({ method }), failure('reset', true))).toBe(true);
  });

  test.each(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY'])('%s asks for no effect', (method) => {
    expect(mayHaveHappened(requestFacts({ method }), failure('reset', true))).toBe(false);
    expect(mayHaveHappened(requestFacts({ method }), response(500))).toBe(false);
  });
});

function spent(resetIn: Quota['resetIn']): NonNullable<Hints['quota']> {
  return { remaining: 0, limit: 100, resetIn, window: 60_000 };
}

describe('what the configuration says of an answer or a path', () => {
  test('a refusal for its rate is retried as a 429, whatever its status', () => {
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
      // It was not done, even where a 5xx would leave that open.
      expect(mayHaveHappened(requestFacts({ method: 'POST' }), response(status, { throttled: true }))).toBe(false);
    }
    const choice = choose(response(200, { throttled: true }));
    expect(choice.kind === 'retry' && choice.retry.charged).toBe(false);
  });

  test('a 429 that is none is an answer', () => {
    expect(verdict(response(429, { throttled: false }))).toBe('settled');
  });

  test('a POST that only reads may be repeated, and leaves nothing open', () => {
    const reads = { request: { method: 'POST', nature: 'safe' } } as const;
    expect(verdict(failure('reset', true), reads)).toBe('reset');
    expect(verdict(response(500), reads)).toBe('status_5xx');
    expect(mayHaveHappened(requestFacts(reads.request), response(500))).toBe(false);
  });

  test('what is never to be sent twice is not, whatever its key and its method, unless nothing was sent', () => {
    for (const request of [{ method: 'POST', keyed: true }, { method: 'PUT' }, { method: 'GET' }]) {
      const never = { request: { ...request, nature: 'never' }, policy: { unkeyedWrites: 'always' } } as const;
      expect(verdict(response(503), never)).toBe('not_idempotent');
      expect(verdict(response(429), never)).toBe('not_idempotent');
      expect(verdict(failure('reset', true), never)).toBe('not_idempotent');
      expect(verdict(failure('connect', false), never)).toBe('connect');
    }
  });
});
