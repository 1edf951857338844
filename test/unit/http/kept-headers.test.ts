import { expect, test } from 'vitest';
import { selectKeptHeaders } from '../../../src/http/idempotency/kept-response.ts';

const namesKept = (names: readonly string[], pacing?: ReadonlySet<string>): string[] =>
  selectKeptHeaders(
    names.flatMap((name) => [name, '1']),
    pacing,
  ).filter((_, i) => i % 2 === 0);

test.each([
  'Retry-After',
  'X-Retry-After',
  'retry-after-ms',
  'x-ms-retry-after-ms',
  'x-amz-retry-after',
  'grpc-retry-pushback-ms',
  'Age',
  'RateLimit',
  'RateLimit-Policy',
  'X-RateLimit-Reset-After',
  'X-Rate-Limit-Remaining',
  'x-ratelimit-limit-tokens',
  'anthropic-ratelimit-requests-remaining',
  'anthropic-ratelimit-input-tokens-limit',
  'X-App-Rate-Limit-Count',
  'X-Shopify-Shop-Api-Call-Limit',
])('%s is not kept with a response', (name) => {
  expect(namesKept([name, 'X-Other'])).toEqual(['X-Other']);
});

test('headers that say why a response is as it is are kept', () => {
  const names = ['Content-Type', 'Stripe-Should-Retry', 'Stripe-Rate-Limited-Reason', 'X-Envoy-RateLimited'];
  expect(namesKept(names)).toEqual(names);
});

test('headers that the configuration reads as times or limits are not kept', () => {
  expect(namesKept(['X-Reset', 'X-Limit-Name', 'X-Other'], new Set(['x-reset', 'x-limit-name']))).toEqual(['X-Other']);
});
