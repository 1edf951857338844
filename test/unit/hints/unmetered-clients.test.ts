import { expect, test } from 'vitest';
import { hashToNumber } from '../../../src/core/quota/requester.ts';
import { UnmeteredSuccesses } from '../../../src/core/quota/unmetered-successes.ts';

test('returns whether another client succeeded within a minute without a quota', () => {
  const successes = new UnmeteredSuccesses();
  const byOthers = (client: string, now: number) => successes.hasRecentFromOthers(hashToNumber(client), now);
  expect([successes.hasRecent(0), byOthers('a', 0)]).toEqual([false, false]);
  successes.onSuccess('a', 0);
  expect([byOthers('a', 1), byOthers('b', 1)]).toEqual([false, true]);
  successes.onSuccess('b', 1000);
  expect([byOthers('a', 2000), byOthers('b', 2000)]).toEqual([true, true]);
  successes.onSuccess('b', 2000);
  expect([byOthers('b', 59_999), byOthers('b', 60_000)]).toEqual([true, false]);
  expect([byOthers('c', 61_999), byOthers('c', 62_000)]).toEqual([true, false]);
  expect([successes.hasRecent(61_999), successes.hasRecent(62_000)]).toEqual([true, false]);
});
