import { describe, expect, test } from 'vitest';
import { type Hints, NO_HINTS, type Quota } from '../../../src/core/hints/hints.ts';
import { readHints, readImpliedWait } from '../../../src/core/hints/read-hints.ts';

const NOW = Date.UTC(2026, 9, 21, 7, 28, 0);
const RESET = ['X-RateLimit-Reset', '12'];
const TOKENS = ['x-ratelimit-remaining-tokens', '0'];

function spentFor(resetIn: number): Quota {
  return { remaining: 0, limit: undefined, resetIn, window: undefined };
}

function waitOf(...headers: string[]): number {
  return readImpliedWait(headers, readHints(429, headers, NOW), NOW, false);
}

describe('the wait implied by a response without Retry-After', () => {
  test.each<[string, string[], number]>([
    ['nothing', [], 0],
    ['retry-after-ms', ['Retry-After-Ms', '1500'], 1500],
    ['x-ms-retry-after-ms', ['x-ms-retry-after-ms', '2400'], 2400],
    ['x-amz-retry-after', ['X-Amz-Retry-After', '3100'], 3100],
    ['gRPC pushback', ['grpc-retry-pushback-ms', '700'], 700],
    ['a RateLimit that is spent', ['RateLimit', '"default";r=0;t=7'], 7000],
    ['RateLimit of draft 07', ['RateLimit', 'limit=10, remaining=0, reset=9'], 9000],
    ['RateLimit in two fields', ['RateLimit', '"a";r=0;t=7', 'RateLimit', '"b";r=0;t=8'], 8000],
    ['X-RateLimit-Reset alone', ['X-RateLimit-Reset', '12'], 12_000],
    ['X-RateLimit-Reset-After', ['X-RateLimit-Remaining', '0', 'X-RateLimit-Reset-After', '2.5'], 2500],
    ['an epoch', ['X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', String(NOW / 1000 + 40)], 40_000],
    [
      'the longest of several',
      ['Retry-After-Ms', '1500', 'RateLimit', '"d";r=0;t=3', 'X-Amz-Retry-After', '900'],
      3000,
    ],
    ['the longest of two with one name', ['Retry-After-Ms', '1500', 'Retry-After-Ms', '2500'], 2500],
    ['one beyond the largest accepted hint', ['Retry-After-Ms', '600000'], 600_000],
    ['an absurd one, capped at a month', ['Retry-After-Ms', '99999999999999'], 31 * 86_400_000],
    ['a window of more than that', ['RateLimit', '"hour";r=0;t=3600'], 3_600_000],
    ['a vendor window of more than that', ['X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '1800'], 1_800_000],
  ])('is that of %s', (_, headers, wait) => {
    expect(waitOf(...headers)).toBe(wait);
  });

  test.each<[string, string[]]>([
    ['is unparsable', ['Retry-After-Ms', 'soon']],
    ['is negative', ['Retry-After-Ms', '-5']],
    ['has a remainder', ['RateLimit', '"default";r=3;t=7']],
    ['has a remainder, from a vendor', ['X-RateLimit-Remaining', '3', 'X-RateLimit-Reset', '7']],
    ['counts bytes', ['RateLimit', '"b";r=0;t=7', 'RateLimit-Policy', '"b";q=9;qu="content-bytes"']],
  ])('is absent where the field %s', (_, headers) => {
    expect(waitOf(...headers)).toBe(0);
  });
});

describe('the wait implied by hints', () => {
  const AMENDED = { ...NO_HINTS, retryAfterMs: 5000 };

  test.each<[string, Hints, string[], number]>([
    ['their delay', AMENDED, [], 5000],
    ['their delay before it was bounded', { ...AMENDED, unboundedRetryAfterMs: 900_000 }, [], 900_000],
    ['their spent quota', { ...NO_HINTS, quota: spentFor(7000) }, [], 7000],
    ['the longer of both', { ...AMENDED, quota: spentFor(7000) }, [], 7000],
    ['a longer field', AMENDED, ['RateLimit', '"d";r=0;t=8'], 8000],
    ['themselves beside a shorter field', AMENDED, ['RateLimit', '"d";r=0;t=3'], 5000],
    ['a reset alone, on a 503', readHints(503, RESET, NOW), RESET, 12_000],
    ['nothing, if a reset is beside a lock', { ...NO_HINTS, lock: true }, RESET, 0],
    ['spent tokens', NO_HINTS, [...TOKENS, 'x-ratelimit-reset-tokens', '20s'], 20_000],
    ['nothing, if the tokens have no reset', NO_HINTS, TOKENS, 0],
  ])('is that of %s', (_, hints, headers, wait) => {
    expect(readImpliedWait(headers, hints, NOW, false)).toBe(wait);
  });
});

describe('the wait implied by a response with Retry-After', () => {
  test.each<[string, string[], number]>([
    ['its Retry-After', ['Retry-After', '400'], 400_000],
    [
      'a quota that is spent',
      ['Retry-After', '2', 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '3600'],
      3_600_000,
    ],
    ['its Retry-After, beside a reset without a count', ['Retry-After', '2', 'X-RateLimit-Reset', '3600'], 2000],
    ['another delay', ['Retry-After', '2', 'Retry-After-Ms', '900000'], 900_000],
  ])('is that of %s', (_, headers, wait) => {
    expect(readImpliedWait(headers, readHints(429, headers, NOW), NOW, true)).toBe(wait);
  });
});
