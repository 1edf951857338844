import { expect, test } from 'vitest';
import { NameLifetime } from '../../../src/sharing/keys/name-lifetime.ts';

const DAY = 24 * 60 * 60 * 1000;

test.each([
  ['a day after its ttl, and a year while it is unresolved', [3 * DAY], { keptFor: 4 * DAY, openFor: 365 * DAY }],
  ['two days without a ttl, resolved or not', [undefined], { keptFor: 2 * DAY, openFor: 0 }],
  ['as long as the longest ttl requires', [1000, 9 * DAY, undefined], { keptFor: 10 * DAY, openFor: 365 * DAY }],
] as const)('a name is stored %s', (_, ttls, terms) => {
  const lifetime = new NameLifetime();
  for (const ttl of ttls) lifetime.onRequest(ttl);
  expect(lifetime.terms).toEqual(terms);
});
