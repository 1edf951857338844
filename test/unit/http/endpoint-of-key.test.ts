import { expect, test } from 'vitest';
import { endpointOfKey } from '../../../src/http/idempotency/endpoint-of-key.ts';

const TWO = { endpoints: { all: [1, 2] } };
const ONE = { endpoints: { all: [1] } };

test.each([
  ['is where the claim says that it was sent', { endpoint: 'a' }, { label: 'b' }, TWO, 'a'],
  [
    'is where this request sent it last, if the claim has forgotten it',
    { endpoint: undefined },
    { label: 'b' },
    TWO,
    'b',
  ],
  ['is none of several if nobody knows', { endpoint: undefined }, undefined, TWO, ''],
  ['is any if there is only one', { endpoint: undefined }, undefined, ONE, undefined],
  ['is any without a claim', undefined, { label: 'b' }, TWO, undefined],
] as const)('the endpoint of a write %s', (_, claim, last, target, expected) => {
  expect(endpointOfKey(claim, last, target)).toBe(expected);
});
