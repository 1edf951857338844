import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseHttpDate } from '../../src/core/hints/http-date.ts';
import { MAX_DELAY, MAX_HINTED_DELAY } from '../../src/core/hints/hint-numbers.ts';
import { formatRetryAfter } from '../../src/core/hints/format-retry-after.ts';
import { readHints } from '../../src/core/hints/read-hints.ts';
import { type Hints, NO_HINTS } from '../../src/core/hints/hints.ts';

const WALL = Date.UTC(2026, 10, 21, 11, 26, 0);

const latin1 = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 60,
});

const NAMES = [
  'Retry-After',
  'retry-after-ms',
  'grpc-retry-pushback-ms',
  'Stripe-Should-Retry',
  'Stripe-Rate-Limited-Reason',
  'x-envoy-ratelimited',
  'RateLimit',
  'RateLimit-Policy',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-RateLimit-Reset-After',
  'X-Shopify-Shop-Api-Call-Limit',
  'x-ms-retry-after-ms',
  'X-Amz-Retry-After',
  ...['Limit', 'Remaining', 'Reset'].flatMap((what) => [
    `X-Rate-Limit-${what}`,
    `x-ratelimit-${what}-requests`,
    `x-ratelimit-${what}-tokens`,
    `anthropic-ratelimit-requests-${what}`,
    `anthropic-ratelimit-tokens-${what}`,
    `anthropic-ratelimit-input-tokens-${what}`,
    `anthropic-ratelimit-output-tokens-${what}`,
  ]),
  'Date',
  'Age',
];

const VALUES = [
  '120',
  '0',
  '1.5',
  'Sat, 21 Nov 2026 11:26:45 GMT',
  'Saturday, 21-Nov-26 11:26:45 GMT',
  'Sat Nov 21 11:26:45 2026',
  'true',
  'false',
  'resource-specific',
  '"default";r=50;t=30',
  '"burst";q=100;w=60,"daily";q=1000;w=86400;qu="requests";pk=:cHs=:',
  'limit=100, remaining=50, reset=30',
  '100, 100;w=60',
  '1795260420',
  '1795260420000',
  '18446744073709551615',
  '32/40',
  '0;w=21600',
  '0 ;w=21600',
  '1m30s',
  '120ms',
  '2026-11-21T11:26:45Z',
  '2026-11-21T12:56+01:30',
];

/** A valid value with a part replaced by arbitrary bytes, or repeated. */
const mutated = fc
  .tuple(fc.constantFrom(...VALUES), fc.nat(60), fc.nat(5), fc.oneof(latin1, fc.constant(undefined)))
  .map(([value, at, length, bytes]) => {
    const end = at + length;
    return value.slice(0, at) + (bytes ?? value.slice(at, end).repeat(3)) + value.slice(end);
  });

const anyCase = fc
  .constantFrom(...NAMES)
  .chain((name) => fc.constantFrom(name, name.toLowerCase(), name.toUpperCase()));

function headersOf(name: fc.Arbitrary<string>, value: fc.Arbitrary<string>): fc.Arbitrary<string[]> {
  return fc.array(fc.tuple(name, value), { maxLength: 8 }).map((pairs) => pairs.flat());
}

const status = fc.oneof(fc.constantFrom(200, 202, 301, 403, 409, 429, 500, 503), fc.integer({ min: 100, max: 599 }));

function expectWithinRanges({ retryAfterMs, quota, retryAdvice, reason, lock }: Hints): void {
  if (retryAfterMs !== undefined) expectWithin(retryAfterMs, 0, MAX_HINTED_DELAY);
  if (quota !== undefined) {
    expectWithin(quota.remaining, 0, Number.MAX_SAFE_INTEGER);
    expect(Number.isInteger(quota.remaining)).toBe(true);
    if (quota.limit !== undefined) expectWithin(quota.limit, 1, Number.MAX_SAFE_INTEGER);
    if (quota.resetIn !== undefined) {
      expectWithin(quota.resetIn, 0, quota.remaining === 0 ? MAX_HINTED_DELAY : MAX_DELAY);
    }
    if (quota.window !== undefined) expectWithin(quota.window, Number.MIN_VALUE, MAX_DELAY);
  }
  expect([undefined, 'retry', 'never']).toContain(retryAdvice);
  if (reason !== undefined) expect(reason).toMatch(/^[\w.:-]{1,64}$/);
  if (lock) expect(reason?.toLowerCase()).toBe('resource-specific');
}

/** Accepts only numbers, without NaN and −0, which would divide to −Infinity. */
function expectWithin(value: number, min: number, max: number): void {
  expect(value >= min && value <= max && !Object.is(value, -0)).toBe(true);
}

describe('arbitrary upstream headers', () => {
  test('of arbitrary bytes never throw, and every hint is within its range', () => {
    const headers = headersOf(fc.oneof(anyCase, latin1), latin1);
    fc.assert(
      fc.property(status, headers, fc.double(), (code, raw, wallClock) =>
        expectWithinRanges(readHints(code, raw, wallClock)),
      ),
      { numRuns: 10_000 },
    );
  });

  test('with mutated valid values, under any name and at any clock, never throw either', () => {
    const headers = headersOf(anyCase, fc.oneof(mutated, fc.constantFrom(...VALUES)));
    const clock = fc.oneof(fc.constant(WALL), fc.double());
    fc.assert(
      fc.property(status, headers, clock, (code, raw, wallClock) =>
        expectWithinRanges(readHints(code, raw, wallClock)),
      ),
      { numRuns: 20_000 },
    );
  });

  test('with a trailing name without a value give the same hints as without it', () => {
    fc.assert(
      fc.property(status, headersOf(anyCase, mutated), anyCase, (code, raw, name) => {
        expect(readHints(code, [...raw, name], WALL)).toEqual(readHints(code, raw, WALL));
      }),
    );
  });

  test('with unknown names give no hints', () => {
    const known = new Set(NAMES.map((name) => name.toLowerCase()));
    const strange = fc
      .oneof(
        latin1,
        fc.tuple(fc.constantFrom(...NAMES), fc.nat(30), latin1).map(([name, at, more]) => name.slice(0, at) + more),
      )
      .filter((name) => !known.has(name.toLowerCase()));
    fc.assert(
      fc.property(status, headersOf(strange, fc.constantFrom(...VALUES)), (code, raw) => {
        expect(readHints(code, raw, WALL)).toBe(NO_HINTS);
      }),
      { numRuns: 2000 },
    );
  });

  test('give the same hints in any order of the fields and in any case of their names', () => {
    const field = fc.constantFrom(
      ['Retry-After', '7'],
      ['Retry-After', '9'],
      ['retry-after-ms', '8500'],
      ['X-RateLimit-Remaining', '3'],
      ['X-RateLimit-Reset', '1795260420'],
      ['RateLimit', '"a";r=4;t=9'],
      ['RateLimit', '"b";r=90;t=60'],
      ['RateLimit-Policy', '"a";q=10;w=10'],
      ['Stripe-Should-Retry', 'true'],
      ['Stripe-Should-Retry', 'false'],
      ['grpc-retry-pushback-ms', '10000'],
      ['Date', 'Sat, 21 Nov 2026 11:26:10 GMT'],
    );
    const shuffled = fc
      .uniqueArray(field, { maxLength: 12 })
      .chain((fields) => fc.tuple(fc.constant(fields), fc.shuffledSubarray(fields, { minLength: fields.length })));
    fc.assert(
      fc.property(status, shuffled, (code, [before, after]) => {
        const louder = after.map(([name = '', value = '']) => [name.toUpperCase(), value]);
        expect(readHints(code, louder.flat(), WALL)).toEqual(readHints(code, before.flat(), WALL));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('values are the same after writing and reading', () => {
  const count = fc.integer({ min: 0, max: 999_999_999_999_999 });
  const seconds = fc.integer({ min: 0, max: 300 });

  test('for Retry-After in seconds, and as a date', () => {
    fc.assert(
      fc.property(seconds, fc.integer({ min: 0, max: 4_000_000_000 }), (delay, sent) => {
        const date = (epoch: number) => new Date(epoch * 1000).toUTCString();
        expect(readHints(429, ['Retry-After', String(delay)], WALL).retryAfterMs).toBe(delay * 1000);
        const headers = ['Retry-After', date(sent + delay), 'Date', date(sent)];
        expect(readHints(429, headers, WALL).retryAfterMs).toBe(delay * 1000);
      }),
    );
  });

  test('for a Retry-After that the proxy sends, within a second', () => {
    const u = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: MAX_HINTED_DELAY }), u, (delay, chance) => {
        const responseFields =
          readHints(429, ['Retry-After', formatRetryAfter(delay, () => chance)], WALL).retryAfterMs ?? Number.NaN;
        expect(Math.abs(responseFields - delay)).toBeLessThan(1000);
      }),
    );
  });

  test('for RateLimit with its policy, and the triple with an epoch', () => {
    const name = fc.string({
      unit: fc.constantFrom('a', 'b', ' ', '0', '9', '_', '-', ';', ',', '=', '"', '\\'),
      maxLength: 12,
    });
    fc.assert(
      fc.property(name, count, count, seconds, fc.integer({ min: 1, max: MAX_DELAY / 1000 }), (text, r, q, t, w) => {
        const quoted = `"${text.replace(/["\\]/g, '\\$&')}"`;
        const limit = q === 0 ? undefined : q;
        const fields = [
          'RateLimit',
          `${quoted};r=${r};t=${t}`,
          'RateLimit-Policy',
          `"other";q=1;w=1, ${quoted};q=${q};w=${w}`,
        ];
        const quota = { remaining: r, limit, resetIn: t * 1000, window: w * 1000 };
        expect(readHints(200, fields, WALL).quota).toEqual(quota);
        const reset = String(WALL / 1000 + t);
        const triple = ['X-RateLimit-Limit', String(q), 'X-RateLimit-Remaining', String(r), 'X-RateLimit-Reset', reset];
        expect(readHints(200, triple, WALL).quota).toEqual({ ...quota, window: undefined });
      }),
    );
  });
});

describe('an HTTP-date equals the result of Date.parse', () => {
  // toUTCString returns an IMF-fixdate for four-digit years.
  const at = (from: string, to: string) =>
    fc.integer({ min: Date.parse(from) / 1000, max: Date.parse(to) / 1000 }).map((epoch) => epoch * 1000);

  test('as IMF-fixdate, from the year 1000 to 9999', () => {
    fc.assert(
      fc.property(at('1000-01-01T00:00:00Z', '9999-12-31T23:59:59Z'), (epoch) => {
        const text = new Date(epoch).toUTCString();
        expect(parseHttpDate(text, WALL)).toBe(Date.parse(text));
      }),
      { numRuns: 5000 },
    );
  });

  test('on every day of four centuries', () => {
    let disagreeing = 0;
    for (let day = Date.UTC(1800, 0, 1); day < Date.UTC(2200, 0, 1); day += 86_400_000) {
      if (parseHttpDate(new Date(day).toUTCString(), WALL) !== day) disagreeing++;
    }
    expect(disagreeing).toBe(0);
  });

  test('as asctime, and as RFC 850 within the 50 years that both parsers interpret alike', () => {
    const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
    fc.assert(
      fc.property(at('1977-01-01T00:00:00Z', '2049-12-31T23:59:59Z'), (epoch) => {
        const date = new Date(epoch);
        const [weekday = '', day = '', month = '', year = '', time = ''] = date
          .toUTCString()
          .replace(',', '')
          .split(' ');
        const asctime = `${weekday} ${month} ${day.replace(/^0/, ' ')} ${time} ${year}`;
        expect(parseHttpDate(asctime, WALL)).toBe(Date.parse(`${asctime} GMT`));
        const rfc850 = `${days[date.getUTCDay()]}, ${day}-${month}-${year.slice(2)} ${time} GMT`;
        expect(parseHttpDate(rfc850, WALL)).toBe(Date.parse(rfc850));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the rounding of a Retry-After that the proxy sends', () => {
  test('has the delay as its mean on an even grid of u, and gives an adjacent whole second each time', () => {
    const grid = 1000;
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: MAX_HINTED_DELAY }), (delay) => {
        let sum = 0;
        for (let k = 0; k < grid; k++) {
          const written = formatRetryAfter(delay, () => (k + 0.5) / grid);
          expect(written).toMatch(/^[1-9]\d{0,2}$/);
          sum += Number(written) * 1000;
        }
        // One step of the grid, and the rounding of binary fractions.
        expect(Math.abs(sum / grid - delay)).toBeLessThanOrEqual(1000 / grid + 1e-6);
      }),
      { numRuns: 50 },
    );
  });

  test('gives a whole number from 1 to 300 for any delay', () => {
    fc.assert(
      fc.property(fc.double(), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (delay, u) => {
        const written = formatRetryAfter(delay, () => u);
        expect(written).toMatch(/^[1-9]\d{0,2}$/);
        expectWithin(Number(written), 1, 300);
      }),
      { numRuns: 2000 },
    );
  });
});
