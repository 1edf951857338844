import { expect, test } from 'vitest';
import { readBucket } from '../../../src/http/cost/read-cost-fields.ts';

const FIELDS = { available: ['available'], limit: ['limit'], refillRate: ['rate'] };

function read(available: number, limit: number, rate: number): ReturnType<typeof readBucket> {
  const values = new Map(Object.entries({ available, limit, rate }));
  return readBucket(FIELDS, (path) => values.get(path.join('.')));
}

test('a bucket is a quota that resets when it is full', () => {
  expect(read(250, 1000, 50)).toEqual({ remaining: 250, limit: 1000, resetIn: 15_000, window: 20_000 });
});

for (const [what, limit, rate] of [
  ['has more units than a bucket can have', 1e308, 1],
  ['has more units than a bucket can have, at any rate', 1e308, 1e308],
  ['refills in thousands of years', 1000, 1e-9],
  ['refills in more than a day', 86_401, 1],
] as const) {
  test(`a bucket that ${what} is ignored`, () => {
    expect(read(1, limit, rate)).toBeUndefined();
  });
}
