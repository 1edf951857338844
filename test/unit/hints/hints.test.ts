import { describe, expect, test } from 'vitest';
import { formatRetryAfter } from '../../../src/core/hints/format-retry-after.ts';
import { MAX_DELAY, MAX_HINTED_DELAY } from '../../../src/core/hints/hint-numbers.ts';
import { readHints } from '../../../src/core/hints/read-hints.ts';
import { type Hints, NO_HINTS, type Quota } from '../../../src/core/hints/hints.ts';

/** 30 s ahead of SENT, so that a test shows which clock was used. */
const WALL = Date.parse('2026-11-21T11:26:30Z');
const SENT = Date.parse('2026-11-21T11:26:00Z');
const DATE = ['Date', 'Sat, 21 Nov 2026 11:26:00 GMT'];
const SENT_S = SENT / 1000;

function read(status: number, ...headers: readonly string[]): Hints {
  return readHints(status, headers, WALL);
}

function quota(partial: Partial<Quota> & { remaining: number }): Quota {
  return { limit: undefined, resetIn: undefined, window: undefined, ...partial };
}

const ORDINARY = [
  ...DATE,
  ...'Content-Type: application/json, Content-Length: 2, Connection: keep-alive, Server: nginx, ETag: "1"'.split(
    /: |, /,
  ),
  ...'Strict-Transport-Security: max-age=63072000, X-Request-Id: req_1, Referrer-Policy: no-referrer'.split(/: |, /),
  ...'X-Content-Type-Options: nosniff, Vary: Origin, Set-Cookie: a=b'.split(/: |, /),
];

describe('a response without hints', () => {
  test.each<readonly [string, readonly string[]]>([
    ['no headers', []],
    ['ordinary headers', ORDINARY],
    [
      'names with the length and first letter of known ones',
      ['x-ratelimit-limbo', '1', 'retry-bfter', '1', 'Stripe-Should-Retrx', 'false'],
    ],
    ['names longer than any known', [`x-ratelimit-reset${'-after'.repeat(9)}`, '1']],
    ['an empty name', ['', '1']],
    ['a name without a value', ['retry-after']],
    [
      'only unusable values',
      ['Retry-After', 'soon', 'X-RateLimit-Remaining', '-1', 'RateLimit', '"p";r', 'stripe-should-retry', '?'],
    ],
  ])('%s: returns NO_HINTS itself', (_, headers) => {
    expect(readHints(429, headers, WALL)).toBe(NO_HINTS);
  });

  test('a policy without a service limit contains no quota', () => {
    expect(read(200, 'RateLimit-Policy', '"p";q=100;w=60')).toBe(NO_HINTS);
  });
});

describe('Retry-After', () => {
  test.each([
    ['120', 120_000],
    ['0', 0],
    ['1.5', 1500],
    [' 7\t', 7000],
    ['300', MAX_HINTED_DELAY],
    ['301', MAX_HINTED_DELAY],
    ['86400', MAX_HINTED_DELAY],
    ['2678401', MAX_HINTED_DELAY],
    ['1795260360', MAX_HINTED_DELAY],
    ['9'.repeat(400), MAX_HINTED_DELAY],
    ['-1', undefined],
    ['+1', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['10s', 10_000],
    ['2m', 120_000],
    ['1m30s', 90_000],
    ['250ms', 250],
    ['10 s', 10_000],
    ['2M', 120_000],
    ['2 parsecs', undefined],
    ['.5', undefined],
    ['1, 2', 2000],
    ['50, 5', 50_000],
    ['5, soon', 5000],
    ['soon, later', undefined],
    ['NaN', undefined],
    ['Infinity', undefined],
    ['', undefined],
  ])('%j is %j', (value, delay) => {
    expect(read(429, 'Retry-After', value).retryAfterMs).toBe(delay);
  });

  test.each([
    ['IMF-fixdate', 'Sat, 21 Nov 2026 11:26:45 GMT'],
    ['RFC 850', 'Saturday, 21-Nov-26 11:26:45 GMT'],
    ['asctime', 'Sat Nov 21 11:26:45 2026'],
    ['RFC 3339', '2026-11-21T12:26:45+01:00'],
  ])('is a date as %s, counted from the Date of the response, or else from the clock of the proxy', (_, value) => {
    expect(read(503, 'retry-after', value, ...DATE).retryAfterMs).toBe(45_000);
    expect(read(503, 'retry-after', `\t${value} `).retryAfterMs).toBe(15_000);
    expect(read(503, 'retry-after', value, 'Date', 'yesterday').retryAfterMs).toBe(15_000);
  });

  test.each([
    ['a little behind it', -1, 45_000],
    ['in the same second', 0, 45_000],
    ['in the same second', 999, 44_001],
    ['a moment later, by network latency', 1249, 43_751],
    ['ahead of it', 1250, 45_000],
  ])('is counted to the millisecond if the clock of the proxy is %s by Date', (_, ahead, wait) => {
    const headers = [...DATE, 'Retry-After', 'Sat, 21 Nov 2026 11:26:45 GMT'];
    expect(readHints(503, headers, SENT + ahead).retryAfterMs).toBe(wait);
  });

  test('is counted from the first usable Date of several', () => {
    const at = 'Sat, 21 Nov 2026 11:26:45 GMT';
    expect(read(503, 'Date', '?', ...DATE, 'Date', at, 'Retry-After', at).retryAfterMs).toBe(45_000);
  });

  test('is ignored for a past date, no wait for the present, and capped for a distant date', () => {
    const at = (date: string) => read(503, ...DATE, 'Retry-After', date).retryAfterMs;
    expect(at('Sat, 21 Nov 2026 11:25:59 GMT')).toBeUndefined();
    expect(at('Sat, 21 Nov 2026 11:26:00 GMT')).toBe(0);
    expect(at('Sun, 22 Nov 2026 11:26:00 GMT')).toBe(MAX_HINTED_DELAY);
    expect(at('Fri, 31 Dec 9999 23:59:59 GMT')).toBe(MAX_HINTED_DELAY);
  });

  test('is the largest of several values, in whatever order, names and case; unusable ones are ignored', () => {
    expect(read(429, 'Retry-After', '2', 'RETRY-AFTER', '9', 'retry-after', '4').retryAfterMs).toBe(9000);
    expect(read(429, 'Retry-After', '2', 'Retry-After-Ms', '2500').retryAfterMs).toBe(2500);
    expect(read(429, 'Retry-After-Ms', '1500', 'Retry-After', '2').retryAfterMs).toBe(2000);
    expect(read(429, 'Retry-After', '2', 'Retry-After', '99999999').retryAfterMs).toBe(MAX_HINTED_DELAY);
  });

  test('may be in milliseconds, as retry-after-ms', () => {
    expect(read(429, 'retry-after-ms', '250').retryAfterMs).toBe(250);
    expect(read(429, 'retry-after-ms', '400000').retryAfterMs).toBe(MAX_HINTED_DELAY);
    expect(read(429, 'retry-after-ms', '-250')).toBe(NO_HINTS);
  });

  test.each([429, 500, 502, 503, 504, 529, 599, 403, 409, 425, 202])('applies to %i', (status) => {
    expect(read(status, 'Retry-After', '3').retryAfterMs).toBe(3000);
    expect(read(status, 'retry-after-ms', '3').retryAfterMs).toBe(3);
  });

  test.each([100, 200, 201, 204, 301, 302, 307, 308, 400, 401, 404, 408, 413, 451, 600])(
    'is ignored on %i',
    (status) => {
      expect(read(status, 'Retry-After', '3', 'retry-after-ms', '3')).toBe(NO_HINTS);
    },
  );
});

describe('X-RateLimit-* and RateLimit-*', () => {
  test.each(['X-RateLimit', 'x-ratelimit', 'RateLimit'])('form a quota: %s-Limit, -Remaining and -Reset', (prefix) => {
    const hints = read(200, `${prefix}-Limit`, '100', `${prefix}-Remaining`, '42', `${prefix}-Reset`, '30');
    expect(hints).toEqual({ ...NO_HINTS, quota: quota({ remaining: 42, limit: 100, resetIn: 30_000 }) });
  });

  test.each([
    ['a delta', '30', 30_000, 30_000],
    ['a delta with decimals', '0.25', 250, 250],
    ['epoch seconds', String(SENT_S + 90), 90_000, 60_000],
    ['epoch seconds with decimals', `${SENT_S + 90}.5`, 90_500, 60_500],
    ['epoch milliseconds', String(SENT + 90_000), 90_000, 60_000],
    ['an epoch in the past', String(SENT_S - 1), undefined, undefined],
    ['epoch microseconds', String((SENT + 90_000) * 1000), 90_000, 60_000],
    ['epoch nanoseconds', `${SENT + 90_000}000000`, 90_000, 60_000],
    ['a number with a parameter, after a blank', '30 ;w=60', 30_000, 30_000],
    ['no number', 'Sat Nov 21 2026', undefined, undefined],
  ])(
    'have a reset in the form of %s, counted from the Date of the response, or else from the clock of the proxy',
    (_, reset, byDate, byWall) => {
      const fields = ['X-RateLimit-Remaining', '5', 'X-RateLimit-Reset', reset];
      expect(read(200, ...fields, ...DATE).quota).toEqual(quota({ remaining: 5, resetIn: byDate }));
      expect(read(200, ...fields).quota).toEqual(quota({ remaining: 5, resetIn: byWall }));
    },
  );

  test('stop requests for at most five minutes after a 403 of GitHub with nothing left', () => {
    const github = (reset: number) =>
      read(403, ...DATE, 'x-ratelimit-limit', '5000', 'x-ratelimit-remaining', '0', 'x-ratelimit-reset', String(reset));
    expect(github(SENT_S + 60).quota).toEqual(quota({ remaining: 0, limit: 5000, resetIn: 60_000 }));
    expect(github(SENT_S + 3000).quota).toEqual(quota({ remaining: 0, limit: 5000, resetIn: MAX_HINTED_DELAY }));
  });

  test('with something left keep the reset, which sets a pace and does not stop requests', () => {
    const hints = read(200, ...DATE, 'x-ratelimit-remaining', '60', 'x-ratelimit-reset', String(SENT_S + 3000));
    expect(hints.quota?.resetIn).toBe(3_000_000);
  });

  test('keep a reset later than the Retry-After apart from it', () => {
    const hints = read(429, 'Retry-After', '2', 'X-RateLimit-Remaining', '7', 'X-RateLimit-Reset', '50');
    expect(hints).toEqual({ ...NO_HINTS, retryAfterMs: 2000, quota: quota({ remaining: 7, resetIn: 50_000 }) });
  });

  test('with nothing left may have no reset', () => {
    expect(read(429, 'X-RateLimit-Remaining', '0').quota).toEqual(quota({ remaining: 0 }));
  });

  test('of Square mean an exhausted quota if a 429 has a reset, but no count and no Retry-After', () => {
    expect(read(429, 'X-RateLimit-Reset', '12').quota).toEqual(quota({ remaining: 0, resetIn: 12_000 }));
    expect(read(429, 'X-RateLimit-Reset', '12', 'Retry-After', '1')).toEqual({ ...NO_HINTS, retryAfterMs: 1000 });
    expect(read(200, 'X-RateLimit-Reset', '12')).toBe(NO_HINTS);
    expect(read(429, 'X-RateLimit-Limit', '12')).toBe(NO_HINTS);
  });

  test('that limit one object have a reset that stops nothing', () => {
    const hints = read(429, 'X-RateLimit-Reset', '12', 'Stripe-Rate-Limited-Reason', 'resource-specific');
    expect(hints.quota).toBeUndefined();
  });

  test('prefer X-RateLimit-Reset-After, a delay that needs no clock', () => {
    const fields = ['X-RateLimit-Remaining', '1', 'X-RateLimit-Reset', String(SENT_S + 99), 'X-RateLimit-Reset-After'];
    expect(read(200, ...DATE, ...fields, '64.57').quota?.resetIn).toBe(64_570);
    expect(read(200, ...DATE, ...fields, 'never').quota?.resetIn).toBe(99_000);
  });

  test('have the most restrictive value of duplicates', () => {
    const once = ['X-RateLimit-Limit', '50', 'X-RateLimit-Remaining', '5', 'X-RateLimit-Reset', '1'];
    const again = ['x-ratelimit-limit', '900', 'x-ratelimit-remaining', '800', 'x-ratelimit-reset', '60'];
    const tightest = quota({ remaining: 5, limit: 50, resetIn: 60_000 });
    expect(read(200, ...once, ...again).quota).toEqual(tightest);
    expect(read(200, ...again, ...once).quota).toEqual(tightest);
  });

  test('of Envoy list the limit with its windows', () => {
    const fields = ['X-RateLimit-Remaining', '98', 'X-RateLimit-Reset', '3', 'X-RateLimit-Limit'];
    const expected = quota({ remaining: 98, limit: 100, resetIn: 3000, window: 60_000 });
    expect(read(200, ...fields, '100, 100;w=60;name="a", 10000;w=86400').quota).toEqual(expected);
    expect(read(200, ...fields, '100, 100;window=60, 10000;window=86400').quota).toEqual(expected);
    expect(read(200, ...fields, '100;w=60').quota).toEqual(expected);
  });

  test('have excessive counts clamped and fractions of a request dropped, without effect on the other values', () => {
    const none = '18446744073709551615';
    const most = 999_999_999_999_999;
    expect(read(200, 'X-RateLimit-Remaining', none).quota).toEqual(quota({ remaining: most }));
    expect(read(200, 'X-RateLimit-Limit', none, 'X-RateLimit-Remaining', '0').quota).toEqual(
      quota({ remaining: 0, limit: most }),
    );
    expect(read(200, 'X-Shopify-Shop-Api-Call-Limit', `${none}/40`).quota).toEqual(quota({ remaining: 0, limit: 40 }));
    expect(read(200, 'X-Shopify-Shop-Api-Call-Limit', `40/${none}`).quota?.limit).toBe(most);
    expect(read(200, 'RateLimit', '"p";r=0;t=5', 'RateLimit-Policy', `"p";q=${none};w=60`).quota).toEqual(
      quota({ remaining: 0, limit: most, resetIn: 5000, window: 60_000 }),
    );
    expect(read(200, 'X-RateLimit-Remaining', '-1', 'X-RateLimit-Reset', '9')).toBe(NO_HINTS);
    expect(read(200, 'X-RateLimit-Remaining', '4.9', 'X-RateLimit-Limit', '0').quota).toEqual(quota({ remaining: 4 }));
  });

  test('of two families have the values of the tighter one', () => {
    const standard = ['RateLimit-Remaining', '10', 'RateLimit-Reset', '1'];
    const vendor = ['X-RateLimit-Remaining', '20', 'X-RateLimit-Reset', '100'];
    expect(read(200, ...standard, ...vendor).quota).toEqual(quota({ remaining: 20, resetIn: 100_000 }));
  });
});

describe('RateLimit and RateLimit-Policy', () => {
  test('are read in the form of the current draft', () => {
    const hints = read(200, 'RateLimit', '"default";r=50;t=30', 'RateLimit-Policy', '"default";q=100;w=60');
    expect(hints.quota).toEqual(quota({ remaining: 50, limit: 100, resetIn: 30_000, window: 60_000 }));
  });

  test('are read with spaces, a partition key and unknown parameters', () => {
    const fieldValue = '"10-in-1min"; r=9; t=54; pk=:YWJj:; acme-x; acme-y=?1; acme-z=@1659578233; acme-w=%"f%c3%bc"';
    const hints = read(200, 'RateLimit', fieldValue, 'RateLimit-Policy', '"10-in-1min"; q=10; w=60; pk=:YWJj:');
    expect(hints.quota).toEqual(quota({ remaining: 9, limit: 10, resetIn: 54_000, window: 60_000 }));
  });

  test('are read with a policy named by a token, as servers between drafts 07 and 08 send it', () => {
    const hints = read(200, 'RateLimit', 'default;r=0;t=5', 'RateLimit-Policy', 'default;q=100;w=10');
    expect(hints.quota).toEqual(quota({ remaining: 0, limit: 100, resetIn: 5000, window: 10_000 }));
  });

  test('are read without a policy, or with one of another name', () => {
    expect(read(200, 'RateLimit', '"p";r=50').quota).toEqual(quota({ remaining: 50 }));
    expect(read(200, 'RateLimit', '"p";r=50', 'RateLimit-Policy', '"q";q=9;w=1').quota).toEqual(
      quota({ remaining: 50 }),
    );
  });

  test('are read in the form of draft 07: a dictionary, and a policy matched by its quota', () => {
    const fields = ['RateLimit', 'limit=100, remaining=50, reset=30'];
    const expected = quota({ remaining: 50, limit: 100, resetIn: 30_000 });
    expect(read(200, ...fields).quota).toEqual(expected);
    expect(read(200, ...fields, 'RateLimit-Policy', '10;w=1, 100;w=60').quota).toEqual({ ...expected, window: 60_000 });
    expect(read(200, ...fields, 'RateLimit', 'remaining=7').quota).toEqual({ ...expected, remaining: 7 });
    expect(read(200, 'RateLimit', 'limit=100, reset=30')).toBe(NO_HINTS);
  });

  test.each([
    ['a spent one before any other', '"a";r=0;t=1, "b";r=1;t=1000', 0, 1000],
    ['of spent ones the longest', '"a";r=0;t=1, "b";r=0;t=9, "c";r=0', 0, 9000],
    ['otherwise the slowest pace', '"a";r=5;t=1, "b";r=100;t=60', 100, 60_000],
    ['one with a pace before one without', '"a";r=5, "b";r=100;t=60', 100, 60_000],
    ['of equal paces the smaller count', '"a";r=20;t=2, "b";r=10;t=1', 10, 1000],
    ['an item without r is none', '"a";t=9, "b";r=7;t=1, "c";r=-1;t=50, "d";r="3";t=50', 7, 1000],
  ])('have the tightest of several policies: %s', (_, field, remaining, resetIn) => {
    expect(read(200, 'RateLimit', field).quota).toEqual(quota({ remaining, resetIn }));
    const reversed = field.split(', ').toReversed();
    expect(read(200, ...reversed.flatMap((item) => ['RateLimit', item])).quota).toEqual(quota({ remaining, resetIn }));
  });

  test('are compared by the larger of two paces: max(limit/window, remaining/time left)', () => {
    const policies = ['RateLimit-Policy', '"burst";q=100;w=10', 'RateLimit-Policy', '"daily";q=1000;w=1000'];
    const hints = read(200, 'RateLimit', '"burst";r=1;t=9, "daily";r=900;t=900', ...policies);
    expect(hints.quota).toEqual(quota({ remaining: 900, limit: 1000, resetIn: 900_000, window: 1_000_000 }));
  });

  test.each(['content-bytes', 'concurrent-requests'])('of %s are no quota of requests', (unit) => {
    const policies = ['RateLimit-Policy', `"b";q=9;w=60;qu="${unit}", "r";q=100;w=60;qu="requests"`];
    const hints = read(200, 'RateLimit', '"b";r=0;t=60, "r";r=50;t=30', ...policies);
    expect(hints.quota).toEqual(quota({ remaining: 50, limit: 100, resetIn: 30_000, window: 60_000 }));
    expect(read(200, 'RateLimit', '"b";r=0;t=60', ...policies)).toBe(NO_HINTS);
  });

  test.each([
    '"p";r=50;t=',
    '"p";r=50,',
    '"p;r=50',
    '"p";r=50 "q";r=0',
    '"p";r=50/q;r=0',
    ',',
    '("p";r=1)',
    'é;r=1',
    '"p";R=1',
    `"p";r=5${' '.repeat(5000)}`,
  ])('are ignored as a whole if they are malformed: %s', (field) => {
    expect(read(200, 'RateLimit', field)).toBe(NO_HINTS);
  });

  test.each(['0', '-0', '-1', '2678401', '"60"'])(
    'have a window of no length, or of more than a month, ignored: %s',
    (w) => {
      const hints = read(200, 'RateLimit', '"p";r=1', 'RateLimit-Policy', `"p";q=5;w=${w}`);
      expect(hints.quota).toEqual(quota({ remaining: 1, limit: 5 }));
    },
  );
});

describe('Shopify', () => {
  test.each([
    ['32/40', quota({ remaining: 8, limit: 40 })],
    ['40/40', quota({ remaining: 0, limit: 40 })],
    ['41/40', quota({ remaining: 0, limit: 40 })],
    ['1/0', undefined],
    ['-1/40', undefined],
    ['40', undefined],
  ])('reports %s calls made', (value, expected) => {
    expect(read(200, 'X-Shopify-Shop-Api-Call-Limit', value).quota).toEqual(expected);
  });
});

describe('directives of the upstream', () => {
  test('include Stripe-Should-Retry, of which a veto outweighs permission', () => {
    expect(read(409, 'Stripe-Should-Retry', 'true').retryAdvice).toBe('retry');
    expect(read(500, 'stripe-should-retry', 'false')).toEqual({ ...NO_HINTS, retryAdvice: 'never' });
    expect(read(500, 'stripe-should-retry', 'false', 'stripe-should-retry', 'true').retryAdvice).toBe('never');
    expect(read(500, 'stripe-should-retry', 'true', 'stripe-should-retry', 'false').retryAdvice).toBe('never');
    expect(read(500, 'stripe-should-retry', 'yes')).toBe(NO_HINTS);
  });

  test.each(['global-rate', 'endpoint-rate', 'global-concurrency', 'endpoint-concurrency'])(
    'include the reason of Stripe: %s',
    (reason) => {
      expect(read(429, 'Stripe-Rate-Limited-Reason', reason)).toEqual({ ...NO_HINTS, reason });
    },
  );

  test('include the reason resource-specific of Stripe, which is about one object', () => {
    const hints = read(429, 'Stripe-Rate-Limited-Reason', 'resource-specific');
    expect(hints).toEqual({ ...NO_HINTS, reason: 'resource-specific', lock: true });
  });

  test('include a reason of at most 64 characters, without spaces', () => {
    const reason = (value: string) => read(429, 'Stripe-Rate-Limited-Reason', value).reason;
    expect(reason('a'.repeat(64))).toBe('a'.repeat(64));
    expect(reason('a'.repeat(65))).toBeUndefined();
    expect(reason('two words')).toBeUndefined();
    expect(reason('ÿ"{}')).toBeUndefined();
  });

  test('include Envoy as the reason if there is no other', () => {
    expect(read(429, 'x-envoy-ratelimited', 'true')).toEqual({ ...NO_HINTS, reason: 'envoy' });
    expect(read(429, 'x-envoy-ratelimited', '', 'Stripe-Rate-Limited-Reason', 'global-rate').reason).toBe(
      'global-rate',
    );
  });

  test.each([
    ['within the bound', ['Retry-After', '300'], 300_000, undefined],
    ['beyond it', ['Retry-After', '301'], MAX_HINTED_DELAY, 301_000],
    ['with a later reset beyond it', ['Retry-After', '2', 'RateLimit', '"d";r=0;t=3600'], MAX_HINTED_DELAY, 3_600_000],
  ])(
    'include a Retry-After %s, bounded for retries and kept in full for the client',
    (_, headers, bounded, unbounded) => {
      const { retryAfterMs, unboundedRetryAfterMs } = read(429, ...headers);
      expect([retryAfterMs, unboundedRetryAfterMs]).toEqual([bounded, unbounded]);
    },
  );

  test('include the pushback of gRPC, a delay on any status', () => {
    expect(read(200, 'grpc-retry-pushback-ms', '1500')).toEqual({ ...NO_HINTS, retryAfterMs: 1500 });
    expect(read(200, 'grpc-retry-pushback-ms', '0').retryAfterMs).toBe(0);
    expect(read(200, 'grpc-retry-pushback-ms', '400000').retryAfterMs).toBe(MAX_HINTED_DELAY);
    expect(read(200, 'grpc-retry-pushback-ms', '9'.repeat(30))).toEqual({
      ...NO_HINTS,
      retryAfterMs: MAX_HINTED_DELAY,
      unboundedRetryAfterMs: MAX_DELAY,
    });
  });

  test.each(['-1', '', 'x', '1.5'])('include no pushback of gRPC that is negative or unparsable: %j', (value) => {
    expect(read(200, 'grpc-retry-pushback-ms', value)).toEqual({ ...NO_HINTS, retryAdvice: 'never' });
    expect(read(200, 'grpc-retry-pushback-ms', value, 'stripe-should-retry', 'true').retryAdvice).toBe('never');
  });
});

describe('quota headers as APIs send them', () => {
  const SPENT = { remaining: 0, limit: 600, resetIn: 40_000, window: undefined };
  const sentAt = Date.UTC(2026, 10, 21, 11, 26, 0);

  test.each<[string, string[]]>([
    [
      'Okta, X',
      ['X-Rate-Limit-Limit', '600', 'X-Rate-Limit-Remaining', '0', 'X-Rate-Limit-Reset', String(sentAt / 1000 + 40)],
    ],
    [
      'OpenAI',
      ['x-ratelimit-limit-requests', '600', 'x-ratelimit-remaining-requests', '0', 'x-ratelimit-reset-requests', '40s'],
    ],
    [
      'Anthropic',
      [
        ...['anthropic-ratelimit-requests-limit', '600', 'anthropic-ratelimit-requests-remaining', '0'],
        ...['anthropic-ratelimit-requests-reset', '2026-11-21T11:26:40Z'],
      ],
    ],
    [
      'with parameters',
      ['X-RateLimit-Limit', '600', 'X-RateLimit-Remaining', '0;w=21600', 'X-RateLimit-Reset', '40;w=21600'],
    ],
  ])('are read: %s', (_, headers) => {
    expect(read(200, ...DATE, ...headers).quota).toEqual(SPENT);
  });

  test.each([
    ['2s', 2000],
    ['1m30s', 90_000],
    ['6m0s', 360_000],
    ['120ms', 120],
    ['1.5s', 1500],
    ['1500µs', 2],
    ['2000000us', 2000],
    ['3000000000ns', 3000],
    ['2026-11-21T11:27Z', 60_000],
    ['1h2m3s', 3_723_000],
    ['2m59.56s', 179_560],
    ['2026-11-21T11:26:45Z', 45_000],
    ['2026-11-21t13:26:45.25+02:00', 45_250],
    ['Sat, 21 Nov 2026 11:26:45 GMT', 45_000],
  ])('have a reset of %s', (reset, resetIn) => {
    expect(read(200, ...DATE, 'X-RateLimit-Remaining', '3', 'X-RateLimit-Reset', reset).quota).toMatchObject({
      resetIn,
    });
  });

  test.each(['s', '2x', '1s2', '2026-13-01T00:00:00Z', '2026-02-30T00:00:00Z', '2026-11-21', '-2s'])(
    'have a reset of %s ignored',
    (reset) => {
      expect(
        read(200, ...DATE, 'X-RateLimit-Remaining', '3', 'X-RateLimit-Reset', reset).quota?.resetIn,
      ).toBeUndefined();
    },
  );

  test.each([
    ['8', 8000],
    ['8s', 8000],
    ['30;w=60', 30_000],
  ])('include X-RateLimit-Reset-After: %s', (value, resetIn) => {
    expect(read(200, 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset-After', value).quota?.resetIn).toBe(resetIn);
  });

  test('with nothing left of a limit of zero are no quota for an upstream that serves requests', () => {
    const nothing = ['X-RateLimit-Limit', '0', 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '250'];
    expect(read(200, ...nothing)).toBe(NO_HINTS);
    expect(read(429, ...nothing).quota?.remaining).toBe(0);
  });

  test('with a quota of tokens are no quota of requests', () => {
    const tokens = ['x-ratelimit-remaining-tokens', '0', 'x-ratelimit-reset-tokens', '6m0s'];
    expect(read(200, ...tokens, 'anthropic-ratelimit-tokens-remaining', '0')).toBe(NO_HINTS);
  });

  test.each([
    ['x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens', '20s'],
    ['anthropic-ratelimit-tokens-remaining', 'anthropic-ratelimit-tokens-reset', '2026-11-21T11:26:20Z'],
    ['anthropic-ratelimit-input-tokens-remaining', 'anthropic-ratelimit-input-tokens-reset', '2026-11-21T11:26:20Z'],
    ['anthropic-ratelimit-output-tokens-remaining', 'anthropic-ratelimit-output-tokens-reset', '2026-11-21T11:26:20Z'],
  ])('with an exhausted quota of tokens set the wait of a 429 without one: %s', (remaining, reset, value) => {
    const requests = ['x-ratelimit-remaining-requests', '99', 'x-ratelimit-limit-requests', '100'];
    const spent = quota({ remaining: 0, resetIn: 20_000 });
    expect(read(429, ...DATE, ...requests, remaining, '0', reset, value).quota).toEqual(spent);
    expect(read(429, ...DATE, ...requests, remaining, '7', reset, value).quota?.remaining).toBe(99);
    expect(read(429, ...DATE, 'Retry-After', '3', remaining, '0', reset, value)).toEqual({
      ...NO_HINTS,
      retryAfterMs: 3000,
    });
  });

  test.each(['x-amz-retry-after', 'x-ms-retry-after-ms'])('include %s, in milliseconds', (name) => {
    expect(read(503, name, '1500').retryAfterMs).toBe(1500);
  });

  test('have a stop of more than a month capped at a month, and such a pace ignored', () => {
    const year = String(365 * 86_400);
    const reset = ['X-RateLimit-Reset-After', year];
    expect(read(200, 'X-RateLimit-Remaining', '0', ...reset).quota?.resetIn).toBe(MAX_HINTED_DELAY);
    expect(read(200, 'X-RateLimit-Remaining', '9', ...reset).quota?.resetIn).toBeUndefined();
  });
});

describe('a response from a cache', () => {
  const QUOTA = ['X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '40'];

  test('requests a wait for the rest of its seconds, counted from its date', () => {
    expect(read(503, ...DATE, 'Age', '10', 'Retry-After', '30').retryAfterMs).toBe(20_000);
    expect(read(503, 'Age', '10', 'Retry-After', '1m').retryAfterMs).toBe(50_000);
    expect(read(503, 'Age', '40', 'Retry-After', '30').retryAfterMs).toBeUndefined();
    for (const name of ['retry-after-ms', 'x-ms-retry-after-ms', 'x-amz-retry-after', 'grpc-retry-pushback-ms']) {
      expect(read(503, 'Age', '10', name, '15000').retryAfterMs).toBe(5000);
      expect(read(503, 'Age', '40', name, '15000').retryAfterMs).toBeUndefined();
    }
  });

  const CACHED = { ...NO_HINTS, isFromCache: true };

  test('is marked as such', () => {
    for (const status of [200, 429, 503]) expect(read(status, 'Age', '10')).toEqual(CACHED);
    expect(read(429, 'Age', '10', 'Retry-After', '30')).toMatchObject({ retryAfterMs: 20_000, isFromCache: true });
    expect(read(429, 'Age', '0')).toBe(NO_HINTS);
  });

  test.each(['3000,', ', 3000', '0, 3000'])('has an Age of %j, parsed as a list', (age) => {
    expect(read(200, ...QUOTA, 'Age', age)).toEqual(CACHED);
  });

  test('contains no current quota', () => {
    expect(read(200, ...DATE, 'Age', '3000', ...QUOTA)).toEqual(CACHED);
    expect(read(200, ...QUOTA, 'RateLimit', '"a";r=0;t=7', 'age', '1')).toEqual(CACHED);
    expect(read(200, ...DATE, 'Age', '0', ...QUOTA).quota?.remaining).toBe(0);
    expect(read(200, ...DATE, 'Age', 'old', ...QUOTA).quota?.remaining).toBe(0);
  });

  test('contains times that are counted from its Date and its Age', () => {
    const at = ['Retry-After', 'Sat, 21 Nov 2026 11:26:45 GMT'];
    expect(read(503, ...DATE, 'Age', '15', ...at).retryAfterMs).toBe(30_000);
    expect(read(503, ...DATE, 'Age', '50', ...at).retryAfterMs).toBeUndefined();
  });
});

describe('fields joined by a proxy', () => {
  const at = (second: number) => `Sat, 21 Nov 2026 11:26:${second} GMT`;

  test.each([
    ['40,', 40_000],
    [', 40', 40_000],
    ['40, 50', 50_000],
    [`${at(45)}, ${at(40)}`, 45_000],
    [`20, ${at(45)}`, 45_000],
    ['40;x=1', 40_000],
    ['"40"', 40_000],
  ])('are read as Retry-After: %s', (value, wait) => {
    const date = ['Date', at(15).replace(':15', ':00')];
    expect(read(429, ...date, 'Retry-After', value).retryAfterMs).toBe(wait);
  });

  test.each(['0, 5', '0,', ', 0', '0, 0'])('are read as X-RateLimit-Remaining: %s', (remaining) => {
    const { quota } = read(200, 'X-RateLimit-Remaining', remaining, 'X-RateLimit-Reset', '40, 30,');
    expect(quota).toMatchObject({ remaining: 0, resetIn: 40_000 });
  });
});

describe('a reset in the spellings of some upstreams', () => {
  const date = ['Date', 'Sat, 21 Nov 2026 11:26:00 GMT'];
  test.each([
    '40S',
    '40 seconds',
    '"40"',
    '0m 40s',
    '0 minutes 40 secs',
    '2026-11-21T11:26:40.000+0000',
    '2026-11-21 11:26:40 UTC',
    '2026-11-21T11:26:40',
    '2026-11-21T13:26:40 +02:00',
  ])('is read: %s', (reset) => {
    const { quota } = read(200, ...date, 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', reset);
    expect(quota?.resetIn).toBe(40_000);
  });

  test.each(['40 parsecs', 'in 40 s', '4 0', '40sx'])('is not read: %s', (reset) => {
    expect(read(200, 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', reset).quota?.resetIn).toBeUndefined();
  });
});

describe('a Retry-After and a spent quota in one response', () => {
  test('form one decision: nothing is sent before both have ended', () => {
    const quota = ['X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '8'];
    expect(read(429, 'Retry-After', '2', ...quota).retryAfterMs).toBe(8000);
    expect(read(429, 'Retry-After', '20', ...quota).retryAfterMs).toBe(20_000);
    expect(read(429, 'Retry-After', '2', 'X-RateLimit-Remaining', '1', 'X-RateLimit-Reset', '8').retryAfterMs).toBe(
      2000,
    );
    expect(read(200, ...quota).retryAfterMs).toBeUndefined();
  });
});

describe('a Retry-After that the proxy sends', () => {
  test.each([
    [2300, 0.29, '3'],
    [2300, 0.31, '2'],
    [2000, 0, '2'],
    [1000, 0, '1'],
    [999, 0, '1'],
    [0, 0, '1'],
    [-5000, 0, '1'],
    [299_999, 0, '300'],
    [900_000, 0, '300'],
    [Number.POSITIVE_INFINITY, 0, '300'],
    [Number.NaN, 0, '1'],
  ])('for %d ms at u = %d is %s', (delay, u, text) => {
    expect(formatRetryAfter(delay, () => u)).toBe(text);
  });
});
