import { expect, test } from 'vitest';
import { formatRatePolicy } from '../../../src/http/headers/rate-limit-policy.ts';

test.each([
  [20, '"class:batch";q=20;w=1'],
  [0.5, '"class:batch";q=1;w=2'],
  [2.5, '"class:batch";q=5;w=2'],
  [100 / 60, '"class:batch";q=5;w=3'],
  [7 / 60, '"class:batch";q=7;w=60'],
  [1 / 3600, '"class:batch";q=1;w=3600'],
  [1 / 86_400, '"class:batch";q=1;w=86400'],
  [Math.PI, '"class:batch";q=62;w=20'],
  [1e-9, '"class:batch";q=1;w=86400'],
])('a rate of %d/s is a whole quota in a whole number of seconds: %s', (rate, policy) => {
  expect(formatRatePolicy('class:batch', rate)).toBe(policy);
});
