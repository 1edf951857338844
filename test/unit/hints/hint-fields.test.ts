/** The names of the fields that carry hints, and how each is read. */
import { describe, expect, test } from 'vitest';
import { collectHintFields, isPacingField } from '../../../src/core/hints/hint-fields.ts';
import { type Hints, NO_HINTS, type Quota } from '../../../src/core/hints/hints.ts';
import { readHints } from '../../../src/core/hints/read-hints.ts';

const WALL = Date.parse('2026-11-21T11:26:30Z');

function read(status: number, ...headers: readonly string[]): Hints {
  return readHints(status, headers, WALL);
}

/** The quota in the hints of a success. */
function quotaOf(...headers: readonly string[]): Quota | undefined {
  return read(200, ...headers).quota;
}

describe('the delay of a field', () => {
  test.each<[name: string, value: string, delay: number]>([
    ['retry-after', '7', 7000],
    ['x-retry-after', '7', 7000],
    ['retry-after-ms', '7', 7],
    ['x-ms-retry-after-ms', '7', 7],
    ['x-amz-retry-after', '7', 7],
    ['grpc-retry-pushback-ms', '7', 7],
    ['grpc-retry-pushback-ms', '\t 7 \t', 7],
  ])('%s: %j', (name, value, delay) => {
    for (const spelling of [name, name.toUpperCase()]) {
      expect(read(429, spelling, value)).toEqual({ ...NO_HINTS, retryAfterMs: delay });
    }
    expect(read(200, name, value).retryAfterMs).toBe(name.startsWith('grpc') ? delay : undefined);
  });

  test.each(['x7', '7x', '7 7', '7.0', '-7', ' '])('of gRPC is a veto if it is no whole number: %j', (value) => {
    expect(read(429, 'grpc-retry-pushback-ms', value)).toEqual({ ...NO_HINTS, retryAdvice: 'never' });
  });
});

describe('the quota of three fields', () => {
  test.each<[limit: string, remaining: string, reset: string]>([
    ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'],
    ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'],
    ['x-rate-limit-limit', 'x-rate-limit-remaining', 'x-rate-limit-reset'],
    ['x-ratelimit-limit-requests', 'x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests'],
    [
      'anthropic-ratelimit-requests-limit',
      'anthropic-ratelimit-requests-remaining',
      'anthropic-ratelimit-requests-reset',
    ],
    ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset-after'],
    ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset-after'],
    ['x-rate-limit-limit', 'x-rate-limit-remaining', 'x-rate-limit-reset-after'],
  ])('%s, %s and %s', (limit, remaining, reset) => {
    const expected = { limit: 100, remaining: 42, resetIn: 30_000, window: undefined };
    expect(quotaOf(limit, '100', remaining, '42', reset, '30')).toEqual(expected);
    expect(quotaOf(reset.toUpperCase(), '30', remaining.toUpperCase(), '42', limit.toUpperCase(), '100')).toEqual(
      expected,
    );
  });

  test.each<[string, readonly string[]]>([
    ['the standard one', ['RateLimit-Remaining', '9']],
    ['that of vendors', ['X-RateLimit-Remaining', '9']],
    ['the one with dashes', ['X-Rate-Limit-Remaining', '9']],
    ['that of requests', ['x-ratelimit-remaining-requests', '9']],
    ['that of Shopify', ['X-Shopify-Shop-Api-Call-Limit', '31/40']],
  ])('is compared with all others: %s', (_, nine) => {
    const others = [
      ...['RateLimit-Remaining', '10', 'X-RateLimit-Remaining', '11', 'X-Rate-Limit-Remaining', '12'],
      ...['x-ratelimit-remaining-requests', '13', 'X-Shopify-Shop-Api-Call-Limit', '26/40'],
    ];
    expect(quotaOf(...others, ...nine)?.remaining).toBe(9);
  });
});

describe('the tokens of model APIs', () => {
  const spent = (prefix: string, seconds: number, suffix = '') => [
    ...[`${prefix}remaining${suffix}`, '0', `${prefix}reset${suffix}`, `${seconds}s`],
  ];

  test('are counted by the prefix of their fields, and the longest reset of what is spent counts', () => {
    const all = [
      ...spent('x-ratelimit-', 1, '-tokens'),
      ...spent('anthropic-ratelimit-tokens-', 2),
      ...spent('anthropic-ratelimit-input-tokens-', 3),
      ...spent('anthropic-ratelimit-output-tokens-', 4),
    ];
    const resets = [4, 8, 12, 16].map((end) => read(429, ...all.slice(0, end)).quota?.resetIn);
    expect(resets).toEqual([1000, 2000, 3000, 4000]);
    expect(read(429, ...all, ...spent('anthropic-ratelimit-input-tokens-', 5)).quota?.resetIn).toBe(5000);
  });

  test('do not share a reset', () => {
    const hints = read(429, 'x-ratelimit-remaining-tokens', '0', 'anthropic-ratelimit-tokens-reset', '20s');
    expect(hints.quota).toEqual({ limit: undefined, remaining: 0, resetIn: undefined, window: undefined });
  });
});

describe('the reason of Stripe', () => {
  test.each<[string, string | undefined]>([
    ['global-rate', 'global-rate'],
    ['\t  a.B_9:c-d \t', 'a.B_9:c-d'],
    ['a b', undefined],
    ['(a', undefined],
    ['a)', undefined],
    ['', undefined],
  ])('in %j is %j', (value, reason) => {
    expect(read(429, 'Stripe-Rate-Limited-Reason', value).reason).toBe(reason);
  });

  test('is the first readable one', () => {
    const name = 'Stripe-Rate-Limited-Reason';
    expect(read(429, name, '?', name, 'first', name, 'second').reason).toBe('first');
  });
});

test.each<[string, Hints['retryAdvice']]>([
  ['true', 'retry'],
  ['\t TRUE ', 'retry'],
  ['False', 'never'],
  ['', undefined],
  ['truer', undefined],
])('Stripe-Should-Retry of %j advises %j', (value, advice) => {
  expect(read(500, 'Stripe-Should-Retry', value).retryAdvice).toBe(advice);
});

test.each<[string, readonly string[], number | undefined]>([
  ['one line', ['"a";r=3'], 3],
  ['two lines', ['"a";r=5', '"b";r=3'], 3],
  ['lines without a value', ['', '"a";r=5', '\t ', '"b";r=3', ''], 3],
  ['a line that is malformed', ['"a";r=5', '?'], undefined],
])('RateLimit is a list of %s', (_, lines, remaining) => {
  expect(quotaOf(...lines.flatMap((line) => ['RateLimit', line]))?.remaining).toBe(remaining);
});

test.each<[string, readonly string[], number | undefined]>([
  ['one line', ['"a";q=9'], 9],
  ['two lines', ['"b";q=8', '"a";q=9'], 9],
  ['lines without a value', ['', '"b";q=8', '\t ', '"a";q=9', ''], 9],
  ['a line that is malformed', ['"a";q=9', '?'], undefined],
])('RateLimit-Policy is a list of %s', (_, lines, limit) => {
  expect(quotaOf('RateLimit', '"a";r=5', ...lines.flatMap((line) => ['RateLimit-Policy', line]))).toEqual({
    ...{ remaining: 5, limit, resetIn: undefined, window: undefined },
  });
});

describe('the fields of a response', () => {
  test('are not collected if none carries a hint', () => {
    expect(collectHintFields(200, ['Content-Type', 'text/plain', '', '1', 'Retry-Afters', '1'], WALL)).toBeUndefined();
    expect(collectHintFields(200, ['Age', '0'], WALL)).toMatchObject({ rateLimit: '', policies: '' });
  });

  test.each(['grpc-retry-pushback-ms', 'x-envoy-ratelimited', 'Retry-After'])('end before a lone name: %s', (name) => {
    expect(read(429, name)).toBe(NO_HINTS);
    expect(read(429, 'Retry-After', '2', name)).toEqual({ ...NO_HINTS, retryAfterMs: 2000 });
  });

  test('have their age and time computed once', () => {
    const headers = ['Age', '30', 'Date', 'Sat, 21 Nov 2026 11:20:00 GMT', 'Retry-After', '40'];
    const fields = collectHintFields(503, headers, WALL);
    const first = [fields?.age(), fields?.sentAt(), fields?.retryAfter];
    headers.fill('');
    expect([fields?.age(), fields?.sentAt(), fields?.retryAfter]).toEqual(first);
    expect(first).toEqual([30, Date.parse('2026-11-21T11:20:30Z'), 10_000]);
  });
});

test.each<[string, boolean]>([
  ['retry-after', true],
  ['age', true],
  ['ratelimit', true],
  ['ratelimit-policy', true],
  ['x-shopify-shop-api-call-limit', true],
  ['stripe-should-retry', false],
  ['stripe-rate-limited-reason', false],
  ['x-envoy-ratelimited', false],
  ['content-type', false],
])('%s is a time or a limit: %j', (name, isPacing) => {
  expect(isPacingField(name)).toBe(isPacing);
});
