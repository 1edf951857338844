import { expect, test } from 'vitest';
import { UntoldQuotas } from '../../src/policy/untold-quotas.ts';

test('asks whether another client succeeded within a minute without a quota', () => {
  const untold = new UntoldQuotas();
  expect(untold.byOthers('a', 0)).toBe(false);
  untold.note('a', 0);
  expect([untold.byOthers('a', 1), untold.byOthers('b', 1)]).toEqual([false, true]);
  untold.note('b', 1000);
  expect([untold.byOthers('a', 2000), untold.byOthers('b', 2000)]).toEqual([true, true]);
  untold.note('b', 2000);
  expect([untold.byOthers('b', 59_999), untold.byOthers('b', 60_000)]).toEqual([true, false]);
  expect([untold.byOthers('c', 61_999), untold.byOthers('c', 62_000)]).toEqual([true, false]);
});
