import { expect, test } from 'vitest';
import { numberOf } from '../../src/core/quota/requester.ts';
import { UntoldQuotas } from '../../src/core/quota/unmetered-successes.ts';

test('asks whether another client succeeded within a minute without a quota', () => {
  const untold = new UntoldQuotas();
  const byOthers = (client: string, now: number) => untold.areOfOthers(numberOf(client), now);
  expect([untold.areRecent(0), byOthers('a', 0)]).toEqual([false, false]);
  untold.note('a', 0);
  expect([byOthers('a', 1), byOthers('b', 1)]).toEqual([false, true]);
  untold.note('b', 1000);
  expect([byOthers('a', 2000), byOthers('b', 2000)]).toEqual([true, true]);
  untold.note('b', 2000);
  expect([byOthers('b', 59_999), byOthers('b', 60_000)]).toEqual([true, false]);
  expect([byOthers('c', 61_999), byOthers('c', 62_000)]).toEqual([true, false]);
  expect([untold.areRecent(61_999), untold.areRecent(62_000)]).toEqual([true, false]);
});
